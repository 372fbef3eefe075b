package mcp

import (
	"context"
	"net/http"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/refusal"
)

// The methods that are answered. The lists of prompts and of resources are empty.
const (
	methodDiscover   = "server/discover"
	methodInitialize = "initialize"
	methodPing       = "ping"
	methodTools      = "tools/list"
	methodCall       = "tools/call"
	methodPrompts    = "prompts/list"
	methodPrompt     = "prompts/get"
	methodResources  = "resources/list"
	methodTemplates  = "resources/templates/list"
	methodResource   = "resources/read"
)

// asked is a request that was let in.
type asked struct {
	*message
	admission *gateway.Admission
	modern    bool        // of 2026-07-28
	headers   http.Header // nil where there are none
	key       string      // of idempotency
	told      *reporter   // nil: the client is told nothing but the answer
	host      *host       // nil: the client is asked nothing
	session   string      // of before 2026-07-28; empty where there is none
}

// answer is what becomes of a request: a result, or a fault.
type answer struct {
	result object
	fault  *fault
	// failed is why a call has no output; the result says it to the model.
	failed *refusal.Error
	callID string
	// session is the id of the session that begins with the answer; empty begins none.
	session string
}

type object map[string]any

func (a *answer) refused() *refusal.Error {
	if a.fault != nil {
		return a.fault.refused
	}
	return a.failed
}

// status is the one of HTTP.
func (a *answer) status() int {
	if a.fault != nil {
		return a.fault.status
	}
	return http.StatusOK
}

// answer answers a request.
func (f *Face) answer(ctx context.Context, r asked) *answer {
	a := f.method(ctx, r)
	if a.fault != nil && !r.modern && (a.fault.code == codeMethod || a.fault.code == codeParams) {
		// Clients of that era take any other status for a fault of the transport.
		a.fault.status = http.StatusOK
	}
	if a.result != nil && r.modern {
		if a.result["resultType"] == nil {
			a.result["resultType"] = "complete"
		}
		meta, _ := a.result["_meta"].(object)
		if meta == nil {
			meta = object{}
		}
		meta[metaServer] = f.server()
		a.result["_meta"] = meta
	}
	return a
}

func (f *Face) method(ctx context.Context, r asked) *answer {
	switch r.method {
	case methodTools:
		return f.tools(r)
	case methodCall:
		return f.call(ctx, r)
	case methodPrompts:
		return f.none(r, "prompts")
	case methodResources:
		return f.none(r, "resources")
	case methodTemplates:
		return f.none(r, "resourceTemplates")
	case methodPrompt:
		return &answer{fault: faulty(codeParams, "There is no such prompt; there are none.").at(http.StatusOK)}
	case methodResource:
		return &answer{fault: faulty(codeParams, "There is no such resource; there are none.").at(http.StatusOK).with(object{"uri": text(r.params["uri"])})}
	case methodDiscover:
		if r.modern {
			return &answer{result: r.cached(object{"supportedVersions": revisions, "capabilities": capabilities(), "instructions": instructions})}
		}
	case methodInitialize:
		if !r.modern {
			return f.initialize(r)
		}
	case methodPing:
		if !r.modern {
			return &answer{result: object{}}
		}
	case methodSetLevel:
		if !r.modern {
			return f.setLevel(r)
		}
	}
	return &answer{fault: faulty(codeMethod, "This method is not answered here.").at(http.StatusNotFound)}
}

// initialize begins a conversation of the era before 2026-07-28. Nothing is
// remembered of it: what the client declares it is given, and brings again.
func (f *Face) initialize(r asked) *answer {
	if text(r.params["protocolVersion"]) == "" {
		return &answer{fault: faulty(codeParams, "\"params.protocolVersion\" must say which revision the client speaks.")}
	}
	spoken := r.spoken()
	return &answer{session: sessionOf(r.declares()), result: object{"protocolVersion": spoken, "capabilities": capabilities(), "serverInfo": f.server(), "instructions": instructions}}
}

// instructions are what a host may tell its model.
const instructions = "Every call is judged before it runs. A result with isError says in error.message what to change; error.retryable says whether the same tool can be called again."

func capabilities() object {
	return object{"tools": object{}, "prompts": object{}, "resources": object{}, "logging": object{}}
}

func (f *Face) server() object {
	return object{"name": "callgate", "title": "Callgate", "version": f.options.Version}
}

// keepFor is how long a list may be kept, in milliseconds: no longer than a change of
// the configuration takes. Every call is judged by the configuration of now.
const keepFor = 2_000

// cached says for how long, and for whom, a list may be kept.
func (r asked) cached(result object) object {
	if r.modern {
		result["ttlMs"], result["cacheScope"] = keepFor, "private"
	}
	return result
}

// none is a list that is empty.
func (f *Face) none(r asked, of string) *answer {
	if _, more := r.params["cursor"]; more {
		return &answer{fault: badCursor()}
	}
	return &answer{result: r.cached(object{of: []any{}})}
}
