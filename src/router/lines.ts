// Lines from a stream of bytes: text split across reads is joined before it is decoded.

/**
 * @param take called with each complete line
 * @param tooLong called once when a line exceeds `bytesMax`; nothing is taken after it
 * @returns the receiver of chunks
 */
export function lineReader(bytesMax: number, take: (line: string) => void, tooLong: () => void) {
  let held: Buffer[] = [];
  let heldBytes = 0;
  let over = false;
  return (chunk: Buffer): void => {
    let rest = chunk;
    while (!over) {
      const end = rest.indexOf(0x0a);
      const part = end < 0 ? rest : rest.subarray(0, end);
      heldBytes += part.length;
      if (heldBytes > bytesMax) {
        over = true;
        tooLong();
        return;
      }
      held.push(part);
      if (end < 0) return;
      const line = Buffer.concat(held).toString('utf8');
      held = [];
      heldBytes = 0;
      rest = rest.subarray(end + 1);
      if (line !== '') take(line);
      if (rest.length === 0) return;
    }
  };
}
