package turns

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/gateway/runs"
	"github.com/callgate/callgate/gateway/server"
	"github.com/callgate/callgate/internal/deadline"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/ratelimit/budget"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/registry"
	"github.com/callgate/callgate/registry/schema"
	"github.com/callgate/callgate/upstream"
)

// Options are the settings that the faces share.
type Options struct {
	Executor *calls.Executor
	// Upstreams returns the models that can be requested now; a nil Set has none.
	Upstreams func() *upstream.Set
	Client    *upstream.Client
	// Runs keeps what runs did; nil: they have no ids, and nothing is kept.
	Runs *runs.Log
	// Budgets bounds what requests to models take; nil: nothing does.
	Budgets *budget.Ledger
	// Heartbeat is how long a stream is silent before a sign of life keeps it alive; 0 is
	// 10 s.
	Heartbeat time.Duration

	heartbeats *deadline.Alarms // of all runs of a face; nil: each has its own
}

// DefaultHeartbeat is the interval of signs of life where Options names none.
const DefaultHeartbeat = 10 * time.Second

// HeaderMode is the header of a request that selects the mode.
const HeaderMode = "Callgate-Mode"

// Run is one request of an application: the turns of the model until one is the answer. It is
// for one goroutine.
type Run struct {
	Admission *gateway.Admission
	Route     *upstream.Route
	Mode      gateway.Mode
	Offer     Offer
	Choice    ToolChoice // of the next turn
	// Answers is how many answers to each turn are asked for; 0: one. Several are for the mode ModeEnforce.
	Answers int
	// MaxAdded bounds the bytes that turns may add to the conversation.
	MaxAdded int
	// KeepAlive sends a sign of life to the application of a stream, which may name what is
	// waited for; nil: the answer is one body.
	KeepAlive func(note string)
	// ClientRuns reports whether the client of this run runs a tool itself, of those that it may run
	// (gateway.Tool.Client). Nil: it runs none, where Callgate runs the tools.
	ClientRuns func(gateway.Tool) bool
	// Observer follows the turns, and Asker asks the user about calls that wait for people; nil:
	// nobody does.
	Observer Observer
	Asker    Asker
	// AskLater takes what the caller can be asked of the calls of the turn that was requested
	// last, each at the place of its report, and reports whether the answer asks it: then the run
	// ends with that turn, whose calls do not run. nil: the caller cannot be asked.
	AskLater func([]*calls.Question) bool

	output       *schema.Schema // by which an answer is judged that is no call; nil: none is asked for, or judged
	options      Options
	wire         upstream.Wire
	requestID    string // the application's
	recording    *runs.Recording
	together     string // names the run for tools that keep conversations
	usage        Usage
	spending     spending
	steps        int // turns whose calls were executed
	repairs      int // refused turns in a row
	added        int // bytes
	refusedCalls map[refusedCall]int
	callID       string // the id of the last judgement, for the header
	awaited      bool   // people were waited for, once
	slot         server.Slot
	sentAt       time.Time // something was sent of a stream
	heartbeat    heartbeat
	answered     http.Header       // of the last answer of the model, for the application
	described    map[string]string // what the request says of tools that the registry has
	// replaced are tools whose schema the request states otherwise than the registry, or which was
	// changed so that it can be judged.
	replaced []string
	// leftOut says why tools of the request cannot be judged, by their names on the wire, which
	// leftOutNames has in the order of the request.
	leftOut      map[string]string
	leftOutNames []string
}

// refusedCall identifies equal refused calls.
type refusedCall struct {
	tool      string
	arguments [sha256.Size]byte
	code      refusal.Code
}

// SetMode sets the requested mode, which may be empty, if the rules of the route allow it. Its
// error is a *Failure.
func (r *Run) SetMode(requested string) error {
	var names []string
	for _, mode := range r.Route.Rules.Modes {
		if requested == "" || requested == string(mode) {
			r.Mode = gateway.ModeEnforce
			if mode == upstream.Orchestrate {
				r.Mode = gateway.ModeCall
			}
			return nil
		}
		names = append(names, string(mode))
	}
	return Bad("", "The header %s must be one of: %s. These are the modes of the upstream %s.", HeaderMode, strings.Join(names, ", "),
		r.Route.Upstream)
}

// Client is the client of models; nil where there is none.
func (r *Run) Client() *upstream.Client { return r.options.Client }

// CallsAreText reports whether the model writes calls as text, in the call language.
func (r *Run) CallsAreText() bool { return r.Route.Rules.Protocol == upstream.Text }

// StatesAgent reports whether calls state the agent that the request is for.
func (r *Run) StatesAgent() bool {
	return r.Admission.AgentRequired() && r.Admission.Subject().Agent != ""
}

// Usage is the usage of all turns so far.
func (r *Run) Usage() *Usage { return &r.usage }

// ID is that of the run; empty where none is kept.
func (r *Run) ID() string { return r.recording.ID() }

// SetHeaders passes the headers of the provider on, which say of limits and requests, and names the run, the last judgement, the tools
// whose schemas are not those of the request, and those that are left out, in the head of the answer, before anything is written.
func (r *Run) SetHeaders(c *gin.Context) {
	for name, values := range r.answered {
		c.Writer.Header()[name] = values
	}
	if id := r.recording.ID(); id != "" {
		server.SetHeader(c, server.HeaderRunID, id)
	}
	if r.callID != "" {
		server.SetHeader(c, server.HeaderCallID, r.callID)
	}
	if len(r.replaced) > 0 {
		server.SetHeader(c, server.HeaderToolsReplaced, listTools(r.replaced))
	}
	if len(r.leftOutNames) > 0 {
		first := r.leftOutNames[0]
		server.SetToolsLeftOut(c, listTools(r.leftOutNames), parser.Quote(first)+": "+r.leftOut[first])
	}
}

// listTools lists names of tools for the head of the answer.
func listTools(names []string) string {
	list := ""
	for i, name := range names {
		more := name[:min(len(name), registry.MaxBroughtName)]
		if strings.Trim(more, registry.OpenAI().Allowed+".") != "" {
			more = strconv.QuoteToASCII(more)
		}
		if i > 0 {
			more = ", " + more
		}
		if len(list)+len(more) > maxListed-len(", and 9999 others") {
			return fmt.Sprintf("%s, and %d others", list, len(names)-i)
		}
		list += more
	}
	return list
}
