// `npm run build`: the bundle, and of it the executable.
import { bundle, bundleFile } from "./bundle.ts";
import { executableFile, makeExecutable } from "./executable.ts";

await bundle();
await makeExecutable();
console.log(`built ${bundleFile}, and ${executableFile} for linux-${process.arch}`);
