// The one failure of the API after which others may be asked instead. In a file of its own: the API client is not loaded
// by those who only need to tell it.
import { Fault } from "../fault.ts";

/** The API server was asked to the end of the time, and said nothing of use: it is away, and nobody was refused. */
export class UnansweredError extends Fault {}
