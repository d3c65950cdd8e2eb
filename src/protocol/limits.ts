// Every limit of the local mail, once. Units stand last in the name; "characters" are Unicode code points.

export const limits = {
  /** Arrays and objects around a value. */
  payloadDepthMax: 200,
  payloadBytesMax: 65_536,
  nativeEnvelopeBytesMax: 16_384,
  nameCharactersMax: 200,
  sessionIdCharactersMax: 128,
  idCharactersMax: 255,
  pathCharactersMax: 4_096,
  cursorCharactersMax: 160,
  sourceHostCharactersMax: 64,
  adapterReceiptBytesMax: 16_384,
  pollCountMax: 100,
  pollCountDefault: 20,
  discoverCountMax: 100,
  discoverCountDefault: 50,
  receiveCountMax: 100,
  /** Of the payloads in one answer, as they are stored, in UTF-16 units. Written for a model, one may take 14 bytes. */
  answerPayloadCharactersMax: 524_288,
  receiveCountDefault: 20,
  acknowledgeCountMax: 100,
  elsewhereCountMax: 5,
  detailCharactersMax: 1_000,
  failuresMax: 64,
  /** Of strangers that ask to pair, and how long each is kept. */
  pairRequestsMax: 64,
  pairRequestKeptMs: 604_800_000,
  /** Of requests that the operator made. Kept for their own way, the time at the other side, and the way of the answer. */
  pairAskedMax: 128,
  pairAskedKeptMs: 1_814_400_000,
  /** Of pairing records on their way, and how long each may take. */
  controlJobsMax: 128,
  controlKeptMs: 604_800_000,
  controlRetryMsMin: 2_000,
  controlRetryMsMax: 300_000,
  /** Sooner than a relay lets it go, which is after a day. */
  controlRepeatMs: 72_000_000,
  /** Of pairing notices to one session. */
  pairingNoticeEveryMs: 60_000,
  /** After one that its host did not take. */
  pairingNoticeAgainMs: 300_000,
  /** For a person to answer what his host asks him. */
  confirmationWaitMs: 600_000,
  replyWaitMsMax: 30_000,
  commandReplyWaitMsMax: 300_000,
  hopsMax: 31,
  automaticCountMax: 30,
  automaticWindowMs: 600_000,
  drainBatch: 200,
  acceptedRemembered: 1_024,
  versionHoldMs: 600_000,
  pollWaitMsMax: 30_000,
  exactSessionWaitMs: 12_000,
  routerCallWaitMs: 2_000,
  writeLockWaitMs: 5_000,
  hookStoreWaitMs: 2_000,
  handOffsPendingMax: 64,
  workSummaryCharactersMax: 200,
  frameBytesMax: 65_536,
  /** Of a router's answer: 100 cards of the longest names. */
  answerBytesMax: 1_048_576,
  frameHopsMax: 4,
  framesPerMinuteMax: 120,
  ringsShown: 3,
  socketPathBytesMax: 103,
  leaseMsDefault: 60_000,
  leaseMsMax: 300_000,
  hostOutcomeWaitMs: 10_000,
  hostOutcomeWaitMsMin: 100,
  hostOutcomeWaitMsMax: 600_000,
  notifierGraceMs: 500,
  wakeTickMs: 2_000,
  unarmedMsMax: 600_000,
  listenerBatchRowsMax: 64,
  listenerBatchBytesMax: 262_144,
  listenerRenewSecondsMax: 3_000,
  hookInputBytesMax: 16_777_216,
  hookInputWaitMs: 2_000,
  hookProjectWaitMs: 2_000,
  /** A log of ours begins anew beyond it; the one before is kept. */
  logBytesMax: 65_536,
  gateLedgerIdsMax: 2_000,
  /** The largest file of ours is such a ledger, of names of 200 characters of 4 bytes: 1.8 MB. */
  privateFileBytesMax: 4_194_304,
  /** How long a listener of a Stop leaves its rows to the gate. */
  gateWaitMs: 3_000,
  reminderProjectsMax: 5,
  reminderCharactersMax: 4_000,
  /** Looked up at once. */
  waitingPage: 500,
  /** From a hook up to its host. */
  ancestryMax: 6,
  hostConfigBytesMax: 65_536,
  /** More of them are held back until the minute is over. */
  printsPerMinuteMax: 5,
  /** For a look at all ancestors. */
  ancestryWaitMs: 2_000,
  codexNoticeBytesMax: 12_288,
  /** Of `codex queue`, and the tries within one ring with the time between them. */
  codexQueueWaitMs: 30_000,
  codexQueueAttemptsMax: 3,
  codexQueueGapMs: 2_000,
  /** After SessionEnd a Codex thread can still be queued for. */
  codexQueueWindowMs: 45_000,
  /** What a bound server leaves to the companion before it rings its thread itself. */
  companionWaitMs: 5_000,
  /** Of a bell other than a listener and Codex. */
  noticeBytesMax: 8_192,
  /** How often the router asks a queue to begin with a notice that nobody has taken in, and for how long. */
  releaseEveryMs: 20_000,
  releaseWindowMs: 600_000,
  releasesAtOnceMax: 4,
  /** For one such question, from the start of its process to the answer. */
  releaseAskMs: 10_000,
  /** For the first word of an ACP agent on a prompt. */
  acpAnswerWaitMs: 10_000,
  /** From an agent's session to its look at our tools. */
  acpToolsWaitMs: 10_000,
  /** For all answers of an agent before its session stands. */
  acpStartWaitMs: 60_000,
  /** Reservations in a row that a channel was written to in vain: the next notice also goes to the listener. */
  channelUnansweredMax: 2,
  /** Of what peers may leave in one inbox, each for itself. */
  linkRecordsMax: 4_096,
  linkRecordBytesMax: 33_554_432,
  /** What is signed counts as fresh for so long, and so much may a clock be behind. */
  signedForMs: 86_400_000,
  signedAheadMs: 60_000,
  /** Facts about one message that was sent away. */
  peerFactsMax: 64,
  outboxCountMax: 10_000,
  pendingCountMax: 100,
  outboxBytesMax: 268_435_456,
  peerExpiryMs: 604_800_000,
  peerExpiryMsMin: 60_000,
  peerExpiryMsMax: 2_592_000_000,
  /** A peer counts as live below it, and as away through the other. */
  peerLiveMs: 90_000,
  peerAwayMs: 259_200_000,
  /** Texts grow pessimistic from it on. */
  peerLongAwayMs: 86_400_000,
  /** Ids remembered of records that are no messages, for each peer, and for all strangers. */
  replayIdsMax: 4_096,
} as const;
