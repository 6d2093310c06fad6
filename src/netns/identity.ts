// What a netns is known by as long as it lives; the kernel gives the numbers out again afterwards. Pure.

export type NetnsId = { readonly device: number; readonly inode: number };

/** True where both are, or were, the same netns at one time. */
export function isSameNetns(one: NetnsId, other: NetnsId): boolean {
  return one.inode === other.inode && one.device === other.device;
}
