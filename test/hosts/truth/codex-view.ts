// What a scripted model saw of the mail, in Codex.

import type { CodexItem, CodexModel, CodexRequest } from '../codex-model.ts';
import type { ModelView } from './observe.ts';

const isOwn = ({ type, role }: CodexItem): boolean =>
  type === 'message' ? role === 'assistant' : type.endsWith('_call') || type === 'reasoning';

/** What came after the model's own last words. */
function newestOf({ body: { input } }: CodexRequest): string {
  const newest = input.slice(input.findLastIndex(isOwn) + 1).filter(({ type }) => type === 'message');
  return newest.flatMap(({ content = [] }) => content.map(({ text = '' }) => text)).join('\n');
}

export const codexView = (model: () => CodexModel): ModelView => ({
  mark: () => model().requests.length,
  since: (mark) => {
    const fresh = model().requests.slice(mark);
    const calls = fresh.flatMap(({ body }) => body.input.filter(({ type }) => type === 'function_call'));
    return {
      told: fresh.map(newestOf).join('\n'),
      all: fresh.map((request) => model().text(request)).join('\n'),
      calls: calls.map(({ name, arguments: given }) => `${name} ${given}`),
    };
  },
});
