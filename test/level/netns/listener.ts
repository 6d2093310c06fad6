// Listens on many ports, TCP and UDP, both families, and answers each connection with who it reached: `<name> <port>`.
// Run inside a netns: node listener.ts <name> <port>... Says "ready" when all ports are open.
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { createServer } from "node:net";

const [name = "", ...ports] = process.argv.slice(2);

async function listenTcp(port: number): Promise<void> {
  const server = createServer((socket) => {
    socket.on("error", () => socket.destroy());
    // The port that the connection was brought to, whichever it was made to.
    socket.end(`${name} ${socket.localPort}\n`);
  });
  server.listen(port, "::");
  await once(server, "listening");
}

async function listenUdp(port: number): Promise<void> {
  const socket = createSocket("udp6");
  socket.on("message", (_, from) => socket.send(`${name} ${port}\n`, from.port, from.address));
  socket.bind(port, "::");
  await once(socket, "listening");
}

for (const port of ports.map(Number)) await Promise.all([listenTcp(port), listenUdp(port)]);
process.stdout.write("ready\n");
