// What Codex asks a person. Nobody is spoken for: without a person's yes everything is declined.

import { isObject } from '../../protocol/json.ts';

/** Whether a person allows it; `title` holds words of a model. Nobody needs the answer once `withdrawn`. */
export type AskPerson = (title: string, withdrawn: AbortSignal) => Promise<boolean>;

type Params = Record<string, unknown>;

interface Question {
  title(params: Params): string;
  allowed(params: Params): object;
  declined: object;
}

const text = (value: unknown, otherwise: string): string =>
  typeof value === 'string' && value !== '' ? value : otherwise;

const decision = (value: string): object => ({ decision: value });
/** Of an older form. */
const denied = { decision: { denied: { rejection: 'nobody allowed it' } } };
const unanswered = { action: 'decline', content: null, _meta: null };

const questions: Readonly<Record<string, Question>> = {
  'item/commandExecution/requestApproval': {
    title: ({ command }) => `the command ${text(command, '(not named)')}`,
    allowed: () => decision('accept'),
    declined: decision('decline'),
  },
  'item/fileChange/requestApproval': {
    title: ({ grantRoot }) => `a change of files ${text(grantRoot, '')}`.trimEnd(),
    allowed: () => decision('accept'),
    declined: decision('decline'),
  },
  'item/permissions/requestApproval': {
    title: ({ reason, permissions }) =>
      `more permissions for this turn, ${JSON.stringify(permissions ?? {})}: ${text(reason, 'no reason given')}`,
    allowed: ({ permissions }) => ({ permissions: isObject(permissions) ? permissions : {}, scope: 'turn' }),
    declined: { permissions: {}, scope: 'turn' },
  },
  'mcpServer/elicitation/request': {
    title: ({ serverName, message }) => `${text(serverName, 'a server')}: ${text(message, 'a question')}`,
    allowed: ({ mode }) => (mode === 'form' ? { action: 'accept', content: {}, _meta: null } : unanswered),
    declined: unanswered,
  },
  'item/tool/requestUserInput': {
    title: () => '',
    allowed: () => ({ answers: {} }),
    declined: { answers: {} },
  },
  execCommandApproval: {
    title: ({ command }) => `the command ${Array.isArray(command) ? command.join(' ') : '(not named)'}`,
    allowed: () => decision('approved'),
    declined: denied,
  },
  applyPatchApproval: {
    title: () => 'a change of files',
    allowed: () => decision('approved'),
    declined: denied,
  },
};

/** The answer; undefined to what is no question of approval. */
export async function answerRequest(
  method: string,
  params: Params,
  withdrawn: AbortSignal,
  ask: AskPerson | undefined,
): Promise<object | undefined> {
  const question = Object.hasOwn(questions, method) ? questions[method] : undefined;
  if (question === undefined) return undefined;
  const title = question.title(params);
  const allowed = title !== '' && ask !== undefined && (await ask(title, withdrawn).catch(() => false));
  return allowed ? question.allowed(params) : question.declined;
}
