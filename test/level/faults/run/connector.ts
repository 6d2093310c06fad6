// Opens connections at a steady rate and counts who answers. Run inside a netns:
// node connector.ts <per second> <port> <address>... Ends when its stdin does, and prints the counts as JSON.
import { connect } from "node:net";

const [rate = 0, port = 0] = process.argv.slice(2, 4).map(Number);
const addresses = process.argv.slice(4);
const counts = new Map<string, number>();
let opened = 0;
let open = 0;

function count(answer: string): void {
  counts.set(answer, (counts.get(answer) ?? 0) + 1);
}

function openOne(): void {
  const host = addresses[opened % addresses.length] ?? "";
  opened += 1;
  open += 1;
  const socket = connect({ host, port });
  let answer = "";
  socket.on("data", (data) => {
    answer = String(data).trim();
    // Nothing stays behind of a connection that is reset: thousands of them would use up all ports.
    socket.resetAndDestroy();
  });
  socket.on("error", ({ message }) => {
    answer ||= message;
  });
  socket.on("close", () => {
    open -= 1;
    count(answer || "no answer");
  });
}

const began = performance.now();
const timer = setInterval(() => {
  const due = Math.floor(((performance.now() - began) / 1_000) * rate) - opened;
  // On a busy machine what was missed is not made up for all at once.
  for (let i = 0; i < Math.min(due, 20) && open < 200; i++) openOne();
}, 1);

process.stdin.resume().on("end", () => {
  clearInterval(timer);
  const seconds = (performance.now() - began) / 1_000;
  const waiting = setInterval(() => {
    if (open > 0 && performance.now() - began < (seconds + 5) * 1_000) return;
    clearInterval(waiting);
    if (open > 0) count(`${open} still open`);
    process.stdout.write(JSON.stringify({ counts: Object.fromEntries(counts), opened, seconds }));
    process.exit(0);
  }, 5);
});
