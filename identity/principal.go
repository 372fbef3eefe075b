package identity

import "time"

// Principal is an authenticated caller, with the agents, the workspace and the projects
// that it may act for. An operator, or who approves calls, may have none of these. It is
// immutable once in use.
type Principal struct {
	Name      string
	Agents    []string
	Workspace string
	Projects  []string // of the workspace
	// Operator allows the use of the admin listener. It gives no right to call tools.
	Operator bool
	// Approves names the rules of approval by which it may approve calls of others. It gives
	// no right to call tools either.
	Approves []string
	// OneThread says that all its calls are one thread, whatever its requests say.
	OneThread bool
	// HooksOnly says that it may only ask whether calls of a coding agent may run, and call nothing itself.
	HooksOnly bool
	// Until is until when its credential is accepted; zero: nothing ends it by itself.
	Until time.Time
	// Expires is when the token that it was read from expires; zero: it was not read from one.
	Expires time.Time
}
