// Package acpproxy stands between a client of the Agent Client Protocol, such as an editor, and
// any agent that speaks it. The agent thinks that the proxy is its client, and the editor that it
// is the agent.
//
// The agent asks for files, terminals and permissions. Each request becomes a call of a registered
// tool (acp.fs.read, acp.fs.write, acp.terminal.create, acp.permission.KIND), is judged by the
// kernel and is in the audit log before the editor sees it. The editor gets the values
// that were judged. A person is asked only where a rule of the policy asks the caller.
//
// A proxy sees messages and nothing else: what the agent's own process does without a message is
// not seen, and there is no sandbox here. So the agent is told to use the editor's files and
// terminals, gets no other MCP server than `callgate mcp`, and may not choose a mode that asks
// nobody. A tool call that it reports to have run without having been judged is recorded, and the
// turn is cancelled or the agent ended, as the operator chooses.
//
// Each message is read strictly by internal/acp/wire and written anew from the members that were read. A
// _meta of the editor does not reach the agent: agents take instructions from it that no schema
// describes. Requests that the protocol does not have are refused on both sides.
package acpproxy
