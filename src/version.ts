// The plugin's own version, from package.json; the bundler puts it in.
import about from "../package.json" with { type: "json" };

export const version: string = about.version;
