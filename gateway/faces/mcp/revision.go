package mcp

import (
	"net/http"
	"slices"

	"github.com/callgate/callgate/internal/jsonrpc"
	"github.com/callgate/callgate/internal/mcp/wire"
)

var revisions = []string{wire.Revision2026, wire.Revision2025, wire.Revision202506} // read only

// unsupported refuses a revision that is not spoken here.
func unsupported(version string) *rpcError {
	if len(version) > maxID {
		return newError(jsonrpc.CodeRequest, "The revision of the protocol is longer than %d bytes.", maxID)
	}
	return newError(wire.CodeVersion, "This revision of the protocol is not spoken here.").
		withData(map[string]any{"supported": revisions, "requested": version})
}

// statesRevision reports whether a message states the revision without initialize in its
// _meta.
func (m *message) statesRevision() bool {
	version, has := m.meta()[wire.MetaVersion]
	return (has && !slices.Contains(revisions[1:], stringOf(version))) || m.Method == wire.MethodDiscover
}

// checkRequestMeta returns the fault of a request of 2026-07-28 whose _meta misses a required
// member or has an invalid one.
func (m *message) checkRequestMeta() *rpcError {
	meta := m.meta()
	if stringOf(meta[wire.MetaVersion]) == "" {
		return newError(jsonrpc.CodeParams, "\"params._meta\" must say %q.", wire.MetaVersion)
	}
	if _, ok := meta[wire.MetaCapabilities].(map[string]any); !ok {
		return newError(jsonrpc.CodeParams, "\"params._meta\" must say %q.", wire.MetaCapabilities)
	}
	if level, has := meta[wire.MetaLevel]; has && !isLevel(level) {
		return badLevel(wire.MetaLevel)
	}
	return nil
}

// checkRevision returns whether a message over HTTP is of 2026-07-28, and an error if its
// headers differ from its body.
func (m *message) checkRevision(h http.Header) (modern bool, f *rpcError) {
	stated, f := singleHeader(h, wire.HeaderVersion)
	if f != nil {
		return true, f
	}
	if stated != wire.Revision2026 && !m.statesRevision() {
		if stated != "" && !slices.Contains(revisions, stated) && m.Method != wire.MethodInitialize {
			return false, unsupported(stated)
		}
		// The headers are optional before 2026-07-28. If both are sent they must agree.
		return false, m.checkHeaders(h, false)
	}
	if !m.IsNotification() {
		if f := m.checkRequestMeta(); f != nil {
			return true, f
		}
		version := stringOf(m.meta()[wire.MetaVersion])
		if stated != version {
			return true, headerMismatch(wire.HeaderVersion)
		}
		if version != wire.Revision2026 {
			return true, unsupported(version)
		}
	}
	return true, m.checkHeaders(h, true)
}

// checkHeaders compares the headers of 2026-07-28 with the message that they describe: a proxy
// may have routed by them.
func (m *message) checkHeaders(h http.Header, required bool) *rpcError {
	if required || len(h[wire.HeaderMethod]) > 0 {
		if f := requireHeader(h, wire.HeaderMethod, m.Method); f != nil {
			return f
		}
	}
	if !required && len(h[wire.HeaderName]) == 0 {
		return nil
	}
	switch m.Method {
	case wire.MethodCall, wire.MethodPrompt:
		return requireHeader(h, wire.HeaderName, stringOf(m.params["name"]))
	case wire.MethodResource:
		return requireHeader(h, wire.HeaderName, stringOf(m.params["uri"]))
	}
	return nil
}
