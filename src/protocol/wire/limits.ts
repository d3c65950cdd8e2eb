// Every limit of the wire format, once. Units stand last in the name; "characters" are Unicode code points.

export const wireLimits = {
  headerBytes: 103,
  signatureBytes: 64,
  /** What a padded plaintext holds beside its own length. */
  recordBytesMax: 131_068,
  paddedBytesMin: 512,
  paddedBytesMax: 131_072,
  itemBytesMax: 131_125,
  cardBytesMax: 65_536,
  cardRecipientsMax: 256,
  /** Times are below it: what a double counts exactly. */
  timeMsEnd: 2 ** 53,
  nameCharactersMax: 200,
  idCharactersMax: 255,
  senderCharactersMax: 200,
  contentTypeBytesMax: 128,
  privacyBytesMax: 32,
  payloadBytesMax: 65_536,
  chainMarksMax: 16,
  relaysMax: 4,
  relaysBytesMax: 1_024,
  claimedNameCharactersMax: 64,
  claimedNameBytesMax: 256,
  suitesMax: 8,
  factsMax: 64,
  queryIdsMax: 64,
  cardSessionsMax: 64,
  cardSessionsBytesMax: 32_768,
  cardTextCharactersMax: 200,
  /** Of all ignorable extensions of a record. */
  extensionsBytesMax: 4_096,
  /** From here on unknown tags are ignored. */
  extensionTagMin: 128,
} as const;
