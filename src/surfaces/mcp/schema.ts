// JSON Schema of the closed field lists, for the tool listing. The lists themselves are what is checked.

import type { Field, Fields } from '../../protocol/fields.ts';

type Schema = {
  type: 'object';
  properties: Record<string, object>;
  required: string[];
  additionalProperties: false;
};

function schemaOf(field: Field): object {
  const description = field.about;
  switch (field.kind) {
    case 'json':
      return { description };
    case 'flag':
      return { type: 'boolean', description };
    case 'integer':
      return { type: 'integer', minimum: field.min, maximum: field.max, description };
    case 'choice':
      return { type: 'string', enum: field.choices, description };
    case 'list':
      return { type: 'array', description };
    case 'instant':
    case 'text':
    case 'name':
      return { type: 'string', description };
  }
}

export function objectSchema(fields: Fields): Schema {
  const entries = Object.entries(fields);
  return {
    type: 'object',
    properties: Object.fromEntries(entries.map(([name, field]) => [name, schemaOf(field)])),
    required: entries.filter(([, field]) => field.required).map(([name]) => name),
    additionalProperties: false,
  };
}
