import { isNullDevice } from '../platform/descriptors.ts';
import { Fault } from '../protocol/errors.ts';

/** Resolves once the text is written; rejects where nobody reads it. */
export async function sayOnStdout(text: string): Promise<void> {
  if (isNullDevice(1)) throw new Fault('internal_error', 'nobody reads stdout');
  await new Promise<void>((resolve, reject) => {
    process.stdout.once('error', reject);
    process.stdout.write(text, (error) => (error ? reject(error) : resolve()));
  });
}
