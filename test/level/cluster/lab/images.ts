// The images of the cluster's pods, made of what the machine has: nothing is pulled.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Box } from "../../runtime/cri/box.ts";
import { pauseImage } from "../../runtime/cri/containerd.ts";
import { copyProgram, layOutBusybox, writeImage } from "../../runtime/cri/image.ts";

/** busybox: shell, httpd, wget, nc. Its web server, if asked for, has one page. */
export const appImage = "slc.local/app:1";
/** HAProxy, configured as a mesh's sidecar: in at 4143, out at 4140, on to where the connection was going. */
export const proxyImage = "slc.local/proxy:1";

/** What the app's web server answers. */
export const page = "served by the app";

// One line a connection: through which side, from whom, to whom, and the proxy's own end of the connection onwards.
const configuration = `global
  log stdout format raw local0
  maxconn 100
  nbthread 1
defaults
  mode tcp
  log global
  option logasap
  log-format "%f %ci:%cp %[dst]:%[dst_port] %[bc_src]:%[bc_src_port]"
  timeout connect 5s
  timeout client 10s
  timeout server 10s
  default_backend original
frontend outbound
  bind :4140
  bind :::4140 v6only
frontend inbound
  bind :4143
  bind :::4143 v6only
backend original
  server original 0.0.0.0:0
`;

/** Writes the images, and gives their files. */
export function writeImages(box: Box): string[] {
  const dir = join(box.dir, "images");
  mkdirSync(dir);
  const app = layOutBusybox(join(dir, "app"));
  mkdirSync(join(app, "www"));
  writeFileSync(join(app, "www/index.html"), `${page}\n`);
  const proxy = layOutBusybox(join(dir, "proxy"));
  copyProgram("/usr/sbin/haproxy", proxy);
  writeFileSync(join(proxy, "etc/haproxy.cfg"), configuration);
  const stay = ["/bin/sleep", "1000000"];
  const images = [
    { name: pauseImage, root: app, command: stay },
    { name: appImage, root: app, command: stay },
    { name: proxyImage, root: proxy, command: ["haproxy", "-db", "-f", "/etc/haproxy.cfg"] },
  ];
  return images.map((image, i) => {
    const file = join(dir, `${i}.tar`);
    writeImage(file, image);
    return file;
  });
}
