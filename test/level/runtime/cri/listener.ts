// Stands for what a pod should not reach past its proxy: takes every connection to a port, and prints who made it.
// Run in a box: node listener.ts <port>
import { createServer } from "node:net";

createServer((socket) => {
  process.stdout.write(`${socket.remoteAddress}\n`);
  socket.on("error", () => socket.destroy());
  socket.end();
}).listen(Number(process.argv[2]), "0.0.0.0", () => process.stdout.write("listening\n"));
