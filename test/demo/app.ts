// The server pod's app: it answers each request with the address of the peer that it sees. Arguments: user id, ports.
// It gives up root itself, because the checkout may lie where other users cannot read.
import { createServer } from "node:http";

const [uid = 0, ...ports] = process.argv.slice(2).map(Number);
process.setgroups?.([]);
process.setgid?.(uid);
process.setuid?.(uid);

for (const port of ports) {
  createServer(({ socket }, response) => {
    response.end(`${socket.remoteAddress}:${socket.remotePort}\n`);
  }).listen(port, "0.0.0.0");
}

process.stdin.resume().on("end", () => process.exit(0));
