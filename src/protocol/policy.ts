// Whom this account trusts: petname to key. Not listed means refused.

export interface TrustedPeer {
  /** The petname, as the owner wrote it. */
  name: string;
  /** 43 characters. */
  key: string;
  /** Whether the peer is told more than that its mail is stored here. */
  receipts: boolean;
}

export interface Policy {
  readonly peers: readonly TrustedPeer[];
  /** By petname, ignoring case and Unicode form. */
  named(name: string): TrustedPeer | undefined;
  /** By exact key. */
  of(key: string): TrustedPeer | undefined;
}
