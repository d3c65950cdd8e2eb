// One request, as it is asked of the tool and as it is typed.

/** The flags of a request, as a person types them; the payload goes to stdin. */
export function typed(action: string, { payload, ...request }: Record<string, unknown>): [string[], string] {
  const flags = Object.entries(request).flatMap(([name, value]) =>
    value === true ? [`--${name.replaceAll('_', '-')}`] : [`--${name.replaceAll('_', '-')}`, String(value)],
  );
  const words = ['message', action, ...flags, ...(payload === undefined ? [] : ['--payload-stdin'])];
  const isJson = request.content_type === 'application/json';
  return [words, payload === undefined ? '' : isJson ? JSON.stringify(payload) : (payload as string)];
}
