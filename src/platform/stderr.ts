// What a process says on stderr. What cannot be written is dropped: a note is no reason to end, nor to wait for a reader.

/** Of what a reader has left unread, and is kept for it. */
const unreadBytesMax = 1_048_576;
let guarded = false;

export function say(text: string): void {
  const { stderr } = process;
  if (!guarded) stderr.on('error', () => {});
  guarded = true;
  if (stderr.writableLength > unreadBytesMax) return;
  try {
    stderr.write(text);
  } catch {
    // a file on a full disk
  }
}
