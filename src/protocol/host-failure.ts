// What a host says of its own failure, in the words of the closed list: its names are mapped here and nowhere else.

import { type ErrorCode, isErrorCode } from './errors.ts';

/** How hosts and their libraries say that a message was too large for them. */
const oversize: ReadonlySet<string> = new Set([
  'native_message_too_large',
  'message_too_large',
  'payload_too_large',
  'frame_too_large',
  'request_too_large',
  'content_too_large',
  'input_too_large',
  'too_large',
  'e2big',
  'emsgsize',
]);

/** A host that cannot do what is asked says `unsupported`. An unknown name is a fault of the adapter; it never says that there is no session. */
export function hostFailure(code: string): ErrorCode | 'unsupported' {
  if (code === 'unsupported') return code;
  if (oversize.has(code)) return 'native_message_too_large';
  return isErrorCode(code) && code !== 'recipient_unavailable' ? code : 'adapter_error';
}
