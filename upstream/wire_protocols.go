package upstream

// Wire is an API that models are asked in. A face is served only in front of upstreams that
// speak its wire.
type Wire string

// The wires.
const (
	ChatWire      Wire = "chat"      // OpenAI chat completions
	MessagesWire  Wire = "messages"  // Anthropic Messages
	ResponsesWire Wire = "responses" // OpenAI Responses
)

// asked are the wires, and where models are asked in each.
var asked = []struct {
	wire Wire
	at   Endpoint
}{{ChatWire, ChatCompletions}, {MessagesWire, Messages}, {ResponsesWire, Responses}}

// Endpoint is where models are asked in the wire.
func (w Wire) Endpoint() Endpoint {
	for _, a := range asked {
		if a.wire == w {
			return a.at
		}
	}
	return ""
}

func wires() (all []Wire) {
	for _, a := range asked {
		all = append(all, a.wire)
	}
	return all
}

// ToolSource says where the definitions of tools come from.
type ToolSource string

// The sources of tools.
const (
	FromRegistry ToolSource = "registry" // a tool that the registry does not have is refused
	FromRequest  ToolSource = "request"  // such a tool joins the registry of its one request
)

// RefusalForm is the answer to an application when a completion stays refused.
type RefusalForm string

// The forms of refusals.
const (
	AsError   RefusalForm = "error"   // an error of the API
	AsMessage RefusalForm = "message" // a final answer of the model, whose text says what was refused
)

// State is the treatment of conversations that the provider keeps.
type State string

// The treatments of state.
const (
	RefuseState State = "refuse" // a request that continues one is refused
	BindState   State = "bind"   // one continues only what its own principal began
)
