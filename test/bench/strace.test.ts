import { expect, test } from "vitest";
import { countStarted } from "./strace.ts";

const thread = "flags=CLONE_VM|CLONE_FS|CLONE_SIGHAND|CLONE_THREAD|CLONE_SYSVSEM";
const fork = "child_stack=NULL, flags=CLONE_CHILD_CLEARTID|SIGCHLD, child_tidptr=0x7fdca4f76a10";

test.for([
  { what: "nothing", trace: "", children: 0, all: 0 },
  { what: "a thread", trace: `10  clone3({${thread}}) = 11`, children: 0, all: 0 },
  { what: "a child", trace: `10  clone(${fork}) = 12`, children: 1, all: 1 },
  {
    what: "a child and a grandchild",
    trace: `10  clone(${fork}) = 12\n12  vfork() = 13`,
    children: 1,
    all: 2,
  },
  {
    what: "a child of the program's thread",
    trace: `10  clone3({${thread}}) = 11\n11  clone(${fork}) = 12`,
    children: 1,
    all: 1,
  },
  {
    what: "a call in two lines, of which the child is quicker",
    trace: `10  clone(${fork} <unfinished ...>\n12  vfork() = 13\n10  <... clone resumed>) = 12\n10  fork() = 14`,
    children: 2,
    all: 3,
  },
  {
    what: "a thread in two lines",
    trace: `10  clone3({${thread}} <unfinished ...>\n10  <... clone3 resumed> => {parent_tid=[11]}, 88) = 11`,
    children: 0,
    all: 0,
  },
  { what: "a fork that failed", trace: "10  fork() = -1 EAGAIN (Again)", children: 0, all: 0 },
])("countStarted() counts $what", ({ trace, children, all }) => {
  expect(countStarted(trace)).toEqual({ children, all });
});
