/** The client of the host that everybody uses, and its types, from where it is kept. */
export { ConnectionError, type ConnectionState, type Method, PintleClient, RequestError, type Told, type Welcome } from "../../../clients/typescript/src/client.ts";
