// What a line may consist of that is handed to iptables-restore: our own words, integers and canonical subnets. Whatever a
// pod wrote into its tables or its annotations, no other word ever gets there.

const builtins = "(?:PREROUTING|INPUT|OUTPUT|POSTROUTING)";
const own = "PROXY_INIT_(?:REDIRECT|OUTPUT)";

const match = [
  "-p tcp",
  "-m tcp --dport \\d+",
  "-m multiport --dports [\\d:,]+",
  "-m owner --[ug]id-owner \\d+",
  '-m comment --comment "sluice/[a-z-]+"',
  "-o lo",
  "-s [0-9a-f:.]+/\\d+",
].join("|");

const target = `-[jg] (?:RETURN|REDIRECT --to-ports \\d+|${own})`;

/** A rule of ours, or a jump of ours, as iptables-save prints it. */
export const ownWords = new RegExp(`^-A (?:${builtins}|${own})(?: (?:${match}))* ${target}$`);
