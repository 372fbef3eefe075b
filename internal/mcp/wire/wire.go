// Package wire holds constants of the Model Context Protocol for both sides of the gateway:
// gateway/faces/mcp, the server for clients, and engine/mcp, the client of tool servers. Names
// are those of the revisions 2026-07-28 and 2025-11-25.
package wire

// The revisions, the latest first. In the first each request is independent; in the others
// a client begins with initialize.
const (
	Revision2026   = "2026-07-28"
	Revision2025   = "2025-11-25"
	Revision202506 = "2025-06-18"
	Revision202503 = "2025-03-26"
	Revision2024   = "2024-11-05"
)

// The headers, as net/http writes their names.
const (
	HeaderSession = "Mcp-Session-Id"
	HeaderVersion = "Mcp-Protocol-Version"
	HeaderMethod  = "Mcp-Method"
	HeaderName    = "Mcp-Name"
	HeaderParam   = "Mcp-Param-" // of an argument that a header repeats
)

// The methods of requests.
const (
	MethodInitialize = "initialize"
	MethodDiscover   = "server/discover"
	MethodPing       = "ping"
	MethodTools      = "tools/list"
	MethodCall       = "tools/call"
	MethodPrompts    = "prompts/list"
	MethodPrompt     = "prompts/get"
	MethodResources  = "resources/list"
	MethodTemplates  = "resources/templates/list"
	MethodResource   = "resources/read"
	MethodSetLevel   = "logging/setLevel"
	MethodListen     = "subscriptions/listen"
)

// The methods by which a server asks its client for input.
const (
	MethodElicitation = "elicitation/create"
	MethodSampling    = "sampling/createMessage"
	MethodRoots       = "roots/list"
)

// The methods of notifications.
const (
	NoticeInitialized = "notifications/initialized"
	NoticeCancelled   = "notifications/cancelled"
	NoticeChanged     = "notifications/tools/list_changed"
	NoticeProgress    = "notifications/progress"
	NoticeMessage     = "notifications/message"
)

// The members of _meta.
const (
	MetaVersion      = "io.modelcontextprotocol/protocolVersion"
	MetaCapabilities = "io.modelcontextprotocol/clientCapabilities"
	MetaClient       = "io.modelcontextprotocol/clientInfo"
	MetaServer       = "io.modelcontextprotocol/serverInfo"
	MetaLevel        = "io.modelcontextprotocol/logLevel"
	MetaProgress     = "progressToken"
)

// The parameters by which a call answers its tool's questions, the members of a result that
// asks them, and the types of results.
const (
	ParamResponses   = "inputResponses"
	ParamState       = "requestState" // a member of the result, too
	MemberRequests   = "inputRequests"
	MemberResultType = "resultType"

	ResultComplete      = "complete"
	ResultInputRequired = "input_required"
)

// The codes of the protocol, beside those of JSON-RPC.
const (
	CodeHeader     = -32020 // the headers differ from the body
	CodeCapability = -32021 // the client has not declared a capability that the call needs
	CodeVersion    = -32022
)
