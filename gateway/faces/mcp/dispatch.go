package mcp

import (
	"context"
	"net/http"

	"github.com/callgate/callgate/internal/jsonrpc"
	"github.com/callgate/callgate/internal/mcp/wire"
)

// handle answers a request.
func (f *Face) handle(ctx context.Context, r request) *response {
	a := f.dispatch(ctx, r)
	if a.fault != nil && !r.modern && (a.fault.Code == jsonrpc.CodeMethod || a.fault.Code == jsonrpc.CodeParams) {
		// Clients of that era take any other status for a fault of the transport.
		a.fault.status = http.StatusOK
	}
	if a.result != nil && r.modern {
		if a.result[wire.MemberResultType] == nil {
			a.result[wire.MemberResultType] = wire.ResultComplete
		}
		meta, _ := a.result["_meta"].(object)
		if meta == nil {
			meta = object{}
		}
		meta[wire.MetaServer] = f.serverInfo()
		a.result["_meta"] = meta
	}
	return a
}

func (f *Face) dispatch(ctx context.Context, r request) *response {
	switch r.Method {
	case wire.MethodTools:
		return f.listTools(r)
	case wire.MethodCall:
		return f.call(ctx, r)
	case wire.MethodPrompts:
		return f.emptyList(r, "prompts")
	case wire.MethodResources:
		return f.emptyList(r, "resources")
	case wire.MethodTemplates:
		return f.emptyList(r, "resourceTemplates")
	case wire.MethodPrompt:
		return &response{fault: newError(jsonrpc.CodeParams, "There is no such prompt; there are none.").withStatus(http.StatusOK)}
	case wire.MethodResource:
		return &response{fault: newError(jsonrpc.CodeParams,
			"There is no such resource; there are none.").withStatus(http.StatusOK).withData(object{"uri": stringOf(r.params["uri"])})}
	case wire.MethodDiscover:
		if r.modern {
			return &response{result: r.cacheable(object{"supportedVersions": revisions, "capabilities": capabilities(false),
				"instructions": instructions})}
		}
	case wire.MethodInitialize:
		if !r.modern {
			return f.initialize(r)
		}
	case wire.MethodPing:
		if !r.modern {
			return &response{result: object{}}
		}
	case wire.MethodSetLevel:
		if !r.modern {
			return f.setLevel(r)
		}
	}
	return &response{fault: newError(jsonrpc.CodeMethod, "This method is not answered here.").withStatus(http.StatusNotFound)}
}

// initialize begins a session of a client older than 2026-07-28. Nothing of it is stored: the
// id of the session holds what the client declares.
func (f *Face) initialize(r request) *response {
	if stringOf(r.params["protocolVersion"]) == "" {
		return &response{fault: newError(jsonrpc.CodeParams, "\"params.protocolVersion\" must say which revision the client speaks.")}
	}
	revision := r.negotiatedRevision()
	return &response{session: newSessionID(r.declaredKinds()),
		result: object{"protocolVersion": revision, "capabilities": capabilities(r.announced), "serverInfo": f.serverInfo(),
			"instructions": instructions}}
}

// instructions are a text for the model, which a host may pass on.
const instructions = "Every call is judged before it runs. A result with isError says in error.message what to change; error.retryable says whether the same tool can be called again."

// capabilities are what is offered; announced says that changed lists of tools are announced. Clients
// of 2026-07-28 are told how long a list may be cached instead.
func capabilities(announced bool) object {
	tools := object{}
	if announced {
		tools["listChanged"] = true
	}
	return object{"tools": tools, "prompts": object{}, "resources": object{}, "logging": object{}}
}

func (f *Face) serverInfo() object {
	return object{"name": "callgate", "title": "Callgate", "version": f.options.Version}
}

// cacheTTL is how long a client may cache a list, in milliseconds: about as long as a change
// of the configuration takes. Every call is judged by the current configuration.
const cacheTTL = 2_000

// cacheable adds to a list how long, and for whom, it may be cached.
func (r request) cacheable(result object) object {
	if r.modern {
		result["ttlMs"], result["cacheScope"] = cacheTTL, "private"
	}
	return result
}

// emptyList is a list that is empty.
func (f *Face) emptyList(r request, of string) *response {
	if _, more := r.params["cursor"]; more {
		return &response{fault: badCursor()}
	}
	return &response{result: r.cacheable(object{of: []any{}})}
}
