// The options, as the schema that reads them has them: one source for the code, README and the example confs.
import * as z from "zod/mini";
import { kubernetesSchema, sharedSchema, sluiceSchema, topSchema } from "../../src/conf/schema.ts";
import { configKeys } from "../../src/mesh/linkerd/names.ts";
import { linkerdSchema } from "../../src/mesh/linkerd/schema.ts";

/** One option: its path in the conf, and type and default as README words them. */
export type Option = { readonly path: string; readonly type: string; readonly initial: string };

type Schema = {
  readonly type?: string | readonly string[];
  readonly enum?: readonly string[];
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: Schema;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly default?: unknown;
};

const confSchema = z.object({
  ...topSchema.shape,
  linkerd: z.object({ ...linkerdSchema.shape, ...sharedSchema.shape }),
  kubernetes: kubernetesSchema,
  sluice: sluiceSchema,
});

/** All options, section by section in the schemas' order. */
export function options(): Option[] {
  const schema = z.toJSONSchema(confSchema, { io: "input" });
  return optionsIn(JSON.parse(JSON.stringify(schema)), "");
}

function optionsIn({ properties = {} }: Schema, prefix: string): Option[] {
  return Object.entries(properties).flatMap(([key, schema]) => {
    const path = prefix + key;
    if (schema.properties !== undefined) return optionsIn(schema, `${path}.`);
    const initial = schema.default === undefined ? "-" : code(JSON.stringify(schema.default));
    return [{ path: code(path), type: typeOf(schema), initial }];
  });
}

function typeOf(schema: Schema): string {
  const { type = "", minimum, maximum, anyOf } = schema;
  if (anyOf !== undefined) return anyOf.map(typeOf).join(" or ");
  if (schema.enum !== undefined) return choice(schema.enum);
  if (schema.items !== undefined) return `list of ${typeOf(schema.items)}`;
  if (type === "object") return `by name: ${typeOf(schema.additionalProperties ?? {})}`;
  const words = typeof type === "string" ? type : type.join(" or ");
  return minimum === undefined ? words : `${words}, ${minimum} to ${maximum}`;
}

// The annotations are many, and have a table of their own.
function choice(words: readonly string[]): string {
  if (words.join() === configKeys.join()) return "annotation";
  const shown = words.map((word) => code(word === "" ? '""' : word));
  return [shown.slice(0, -1).join(", "), shown.at(-1)].join(" or ");
}

function code(text: string): string {
  return `\`${text}\``;
}
