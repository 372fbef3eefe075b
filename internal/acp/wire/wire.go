// Package wire holds the Agent Client Protocol, version 1: names of methods and updates, the
// types of all params and results in both directions but those of elicitation, which is not offered,
// one strict reader of them, by the tags of their fields, and their writers.
//
// The readers accept values that are valid by the schema of the protocol, and of these only
// those that also keep the rules of the protocol's text and the bounds of this package:
//
//   - The JSON is strict: no duplicate names, valid UTF-8, nested no deeper than MaxDepth.
//   - Paths are absolute. The first line of a file is 1. Ids are 1 to MaxID bytes long.
//   - Enums are closed where the schema closes them. Where it leaves a discriminator open, a
//     value that this package does not know is refused, since its members could not be read.
//   - A list has at most MaxItems elements, and an object of any names as many members.
//   - Members that the protocol does not have are dropped, so they never reach the other side.
//     In the params of requests that an agent makes, they are refused instead: the client
//     would act on less than the agent asked for.
//   - A _meta of more than MaxMeta bytes is dropped; another value than an object is refused.
//
// A value that was read is written by encoding/json. The bytes have the members of this
// package and no others, and is valid by the schema again.
package wire

// Version is the version of the protocol that these types are of.
const Version = 1

// Methods that an agent implements.
const (
	MethodInitialize             = "initialize"
	MethodAuthenticate           = "authenticate"
	MethodLogout                 = "logout"
	MethodSessionNew             = "session/new"
	MethodSessionLoad            = "session/load"
	MethodSessionResume          = "session/resume"
	MethodSessionList            = "session/list"
	MethodSessionDelete          = "session/delete"
	MethodSessionClose           = "session/close"
	MethodSessionPrompt          = "session/prompt"
	MethodSessionCancel          = "session/cancel" // a notification
	MethodSessionSetMode         = "session/set_mode"
	MethodSessionSetConfigOption = "session/set_config_option"
)

// Methods that a client implements.
const (
	MethodSessionUpdate       = "session/update" // a notification
	MethodRequestPermission   = "session/request_permission"
	MethodReadTextFile        = "fs/read_text_file"
	MethodWriteTextFile       = "fs/write_text_file"
	MethodTerminalCreate      = "terminal/create"
	MethodTerminalOutput      = "terminal/output"
	MethodTerminalWaitForExit = "terminal/wait_for_exit"
	MethodTerminalKill        = "terminal/kill"
	MethodTerminalRelease     = "terminal/release"
)

// MethodCancelRequest is a notification of either side.
const MethodCancelRequest = "$/cancel_request"

// Error codes of the protocol, beside those of JSON-RPC.
const (
	CodeCancelled = -32800
	CodeAuth      = -32000
	CodeNotFound  = -32002
)

// Bounds of what is read.
const (
	MaxDepth = 64
	MaxID    = 1024
	MaxItems = 4096
	MaxMeta  = 16 << 10
)
