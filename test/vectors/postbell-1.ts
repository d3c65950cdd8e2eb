// The vectors of the format `postbell-1`, as the specification prints them (peers, section 10; relay, section 3). Expected values are
// literals: nothing here is computed by the product.

import type { WireRecord } from '../../src/protocol/wire/record.ts';

const counting = (from: number): string =>
  Array.from({ length: 16 }, (_, at) => (from + at).toString(16).padStart(2, '0')).join('');

export const seedA = Uint8Array.from({ length: 32 }, (_, at) => at);
export const seedB = new Uint8Array(32).fill(0x42);
export const keyA = 'A6EHv_POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg';
export const keyB = 'IVL40Zt5HSRFMkLhXy6rbLfP-ntqXtMAl5YOBpiB2xI';
export const deviceA = counting(0xa0);
export const deviceB = counting(0xb0);
export const T = 1_790_000_000_123;

export const exchangeA = '4701d08488451f545a409fb58ae3e58581ca40ac3f7f114698cd71deac73ca01';
export const exchangeB = 'cc4f2cdb695dd766f34118eb67b98652fed1d8bc49c330b119bbfa8a64989378';

export const fingerprints = {
  a: 'edgr-tswe-pmvs-birj-vd3s-mgaq-w4ay-stto',
  b: 'ib2d-7te4-kkgc-x3tu-fl4n-qibs-tphx-ragd',
};
export const pairCodeOfAAndB = '4860 2383 3151';

export interface Vector {
  id: string;
  record: WireRecord;
  /** Tag and value, for an encoder that is not the product's: text, or bytes in hex after `0x`. */
  fields: readonly (readonly [tag: number, value: string])[];
  bodyBytes: number;
  bodySha256: string;
  signature: string;
}

const idOfP1 = '00112233-4455-6677-8899-aabbccddeeff';
const p1Hex = '0x00112233445566778899aabbccddeeff';
const idOfP4 = '20212223-2425-2627-2829-2a2b2c2d2e2f';
const expires = T + 604_800_000;
const expiresHex = `0x${expires.toString(16).padStart(16, '0')}`;
const secondHex = (T + 1).toString(16).padStart(16, '0');

export const vectors: readonly Vector[] = [
  {
    id: 'P1',
    record: {
      type: 'message',
      from: keyA,
      to: keyB,
      time_ms: T,
      id: idOfP1,
      fields: {
        project: 'demo',
        recipient: 'reviewer',
        target_kind: 'principal',
        content_type: 'text/plain',
        payload: '"hello"',
        sender: 'alice',
        privacy: 'private',
        expires_at_ms: expires,
        hops: 0,
        root_id: idOfP1,
        from_session: 's-1',
        from_device: deviceA,
      },
    },
    fields: [
      [1, 'demo'],
      [2, 'reviewer'],
      [3, '0x01'],
      [5, 'text/plain'],
      [6, '"hello"'],
      [11, 'alice'],
      [12, 'private'],
      [13, expiresHex],
      [14, '0x00'],
      [15, p1Hex],
      [17, 's-1'],
      [18, `0x${deviceA}`],
    ],
    bodyBytes: 249,
    bodySha256: '204948d5d1f04e076ba4fe33513136a3eed86c84f9e2f93386e03b83a9499c02',
    signature: 'DcoqvYhvq4PyJE-yHo_CExPcs6kQVHjhyE0hNXVvv7c1uXTdJoFVK-ufsKoWoIIk7xnfCbjYYAu0VTk9HK8YDQ',
  },
  {
    id: 'P2',
    record: {
      type: 'message',
      from: keyA,
      to: keyB,
      time_ms: T,
      id: '00010203-0405-0607-0809-0a0b0c0d0e0f',
      fields: {
        project: 'd\u00e9mo',
        recipient: 'sess-9',
        target_kind: 'session',
        content_type: 'application/json',
        payload: '{"q":"h\u00e9llo \u{1f600}"}',
        status: 'needs_input',
        task_id: 't-1',
        reply_to: idOfP1,
        sender: 'alice',
        privacy: 'private',
        expires_at_ms: expires,
        hops: 1,
        root_id: idOfP1,
        from_session: 's-1',
        from_device: deviceA,
      },
    },
    fields: [
      [1, 'd\u00e9mo'],
      [2, 'sess-9'],
      [3, '0x02'],
      [5, 'application/json'],
      [6, '{"q":"h\u00e9llo \u{1f600}"}'],
      [7, '0x02'],
      [8, 't-1'],
      [9, p1Hex],
      [11, 'alice'],
      [12, 'private'],
      [13, expiresHex],
      [14, '0x01'],
      [15, p1Hex],
      [17, 's-1'],
      [18, `0x${deviceA}`],
    ],
    bodyBytes: 301,
    bodySha256: '9a0980812c59010b571244d03b6e8c13eca56ff6c28d55e58c6fafb9cd8fff0a',
    signature: 'E-wtDPAtpwqMESrnVWqRR90NzCpYe1d60NOGMwmD0RHLpg3PYcrH7xn3wz_0wPfPxMXPtxtZhifKmrP6wXTFDw',
  },
  {
    id: 'P3',
    record: {
      type: 'receipt',
      from: keyB,
      to: keyA,
      time_ms: T + 1,
      id: '10111213-1415-1617-1819-1a1b1c1d1e1f',
      fields: {
        from_device: deviceB,
        facts: [
          { message_id: idOfP1, fact: { kind: 'stored', detail: 'live' }, time_ms: T + 1 },
          { message_id: idOfP1, fact: { kind: 'ack', detail: 'ack' }, time_ms: T + 1 },
        ],
      },
    },
    fields: [
      [18, `0x${deviceB}`],
      [35, `${p1Hex}0101${secondHex}${p1Hex.slice(2)}0300${secondHex}`],
    ],
    bodyBytes: 181,
    bodySha256: '6256e85028dc505d57e3fefd661f523337bbc0bf090ce7a66a165a3268562231',
    signature: 'mA5JKo-AUemyk4iUOFJ1bruCXD3irx_Dlo0QXcxxJ05MfzurrL9OWXKooq_RRKAOAY2sdFXL-JxX-qRYvQgfCQ',
  },
  {
    id: 'P4',
    record: {
      type: 'pair_request',
      from: keyA,
      to: keyB,
      time_ms: T,
      id: idOfP4,
      fields: {
        from_device: deviceA,
        from_relays: ['https://relay.example'],
        name: 'alice-laptop',
        suites: [1],
      },
    },
    fields: [
      [18, `0x${deviceA}`],
      [19, 'https://relay.example'],
      [32, 'alice-laptop'],
      [34, '0x01'],
    ],
    bodyBytes: 173,
    bodySha256: '2e8e1e9e3fac41d272a5a4a384c7ef07b6393d1e310c56ad15ed5b4eba001e7e',
    signature: 'DJELEqdwafe75jhg1OdUFKXWJ9OtdFTUlZG5Rc3kWOGTshgSpYi76rISVeUjQBLa8bWvWQt_dPA3ytKqdRt2AQ',
  },
  {
    id: 'P5',
    record: {
      type: 'pair_accept',
      from: keyB,
      to: keyA,
      time_ms: T + 1,
      id: '30313233-3435-3637-3839-3a3b3c3d3e3f',
      fields: {
        from_device: deviceB,
        from_relays: ['https://relay.example'],
        name: 'bob',
        request_id: idOfP4,
        suites: [1],
      },
    },
    fields: [
      [18, `0x${deviceB}`],
      [19, 'https://relay.example'],
      [32, 'bob'],
      [33, `0x${counting(0x20)}`],
      [34, '0x01'],
    ],
    bodyBytes: 185,
    bodySha256: '95a3cbe4972214eca4aeeabc05f6f758821d32a585990e712a8473aca5d3f43b',
    signature: 'are1GJ3c7xtvO57JJNXwz8r7BC-l67gQfLczdoKdtPBBjUdsPiFaXQJl5IzbZpquqeliNDlQZxeSyTQYHU6kCQ',
  },
];

export const bodyOfP1 =
  '706f737462656c6c2d3100010003a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b82152f8d19b791d24453242e15f2eab6cb7cffa7b6a5ed30097960e069881db12000001a0c4506c7b00112233445566778899aabbccddeeff000c010000000464656d6f02000000087265766965776572030000000101050000000a746578742f706c61696e06000000072268656c6c6f220b00000005616c6963650c00000007707269766174650d00000008000001a0e85cf07b0e00000001000f0000001000112233445566778899aabbccddeeff1100000003732d311200000010a0a1a2a3a4a5a6a7a8a9aaabacadaeaf';

/** P1 sealed to B's device B. */
export const p6 = {
  ephemeral: new Uint8Array(32).fill(7),
  enc: '5fd47633b5e43fca7bad1bfbe424feacb175d9d4d4a30f166dbd30636f0b446b',
  sharedSecret: 'cfef57adeeeb98838b4e66e459e3acea7716011868a304a56ace26d76a307034',
  key: 'd1528a914cb871070252019fc3fdd54dde0738a915db455f166b460b73157e85',
  baseNonce: '21e03b2f4c4bf8e7ec9e486e',
  plaintextBytes: 512,
  itemBytes: 565,
  itemSha256: '06c18d34124cebea6008f7cba41ee461050cc55c2502b96fd0df678918979e95',
};

/** B settles its device queue. */
export const relayRequest = {
  method: 'POST',
  authority: 'relay.example',
  path: `/v1/queues/${keyB}.${deviceB}/settle`,
  query: '',
  created: 1_790_000_000,
  nonce: 'AAECAwQFBgcICQoLDA0ODw',
  body: '{"ack":["t1"],"defer":[]}',
  base: [
    '"@method": POST',
    '"@authority": relay.example',
    '"@path": /v1/queues/IVL40Zt5HSRFMkLhXy6rbLfP-ntqXtMAl5YOBpiB2xI.b0b1b2b3b4b5b6b7b8b9babbbcbdbebf/settle',
    '"@query": ?',
    '"content-digest": sha-256=:hDq9ra1GZa/rWw/YPpp3Z9UNResMyH8WNiB2hBsDWeY=:',
    '"@signature-params": ("@method" "@authority" "@path" "@query" "content-digest");created=1790000000;nonce="AAECAwQFBgcICQoLDA0ODw";keyid="IVL40Zt5HSRFMkLhXy6rbLfP-ntqXtMAl5YOBpiB2xI";alg="ed25519";tag="postbell-relay-1"',
  ].join('\n'),
  baseSha256: '5349c934582740c129853bee40191bdcffe1a6a318aa72d99f81d45324e415ee',
  signature: 'BlEmQkpZMSt5jE6Fmanz6PD/isudE8eWrZPwjtgzCn/sc32ce8a4XEOS/CXKx3yWL2DxWIKTd4vBQio5jW82DQ==',
};
