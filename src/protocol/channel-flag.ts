// How Claude Code is told to open a channel, and what a command line shows of a person who meant to and did not. The host
// itself says nothing of a flag that it does not know.

export const channelFlag = '--dangerously-load-development-channels';
export const channelServerName = 'postbell-channel';
export const channelServer = `server:${channelServerName}`;
export const channelPlugin = 'plugin:postbell@postbell';

const flagWord = channelFlag.slice(2);
const isClaude = /^(?:\S*\/)?(?:(?:node|bun)\s+(?:\S*\/)?)?claude(?:\.exe|\.m?js)?(?=\s|$)/;

/** The words of the host that runs this session, `--flag=value` taken apart; undefined where it is not found. */
function hostWords(chain: readonly string[]): string[] | undefined {
  const words = chain.find((line) => isClaude.test(line))?.split(/\s+/);
  return words?.flatMap((word) =>
    word.startsWith(`${channelFlag}=`)
      ? [channelFlag, ...word.slice(channelFlag.length + 1).split(',')]
      : [word],
  );
}

/** Whether that host was told to open that channel; undefined where it is not found. */
export function opensChannel(chain: readonly string[], channel: string): boolean | undefined {
  const words = hostWords(chain);
  return words?.includes(channelFlag) && words.includes(channel);
}

/**
 * One line for the person where the flag of the host that runs this session is mistyped or forgotten; undefined where it is
 * right, no channel is meant, or the host is not found.
 * @param chain command lines from the nearest ancestor up
 */
export function channelFlagWarning(chain: readonly string[]): string | undefined {
  const words = hostWords(chain);
  if (words === undefined || words.includes(channelFlag)) return undefined;
  const mistyped = words.some((word) => word.includes(flagWord));
  if (mistyped)
    return `the flag for channels is mistyped; it is ${channelFlag}, with two plain hyphens at its front`;
  const named = [channelServer, channelPlugin].find((one) => words.includes(one));
  return named && `${named} is given without ${channelFlag} before it, so that it names no channel`;
}
