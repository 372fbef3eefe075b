package mcp

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"slices"
	"strings"

	"github.com/callgate/callgate/internal/jsonrpc"
	"github.com/callgate/callgate/internal/mcp/wire"
	"github.com/callgate/callgate/tool"
)

// The parts of a session id: the version of its form, the kinds of questions that the client
// declared to answer, and an unguessable nonce. The id grants no right: any replica can read
// it, and a client that changes it only declares something else. The one thing stored under it
// is the level of logs.
const (
	sessionVersion       = "1"
	sessionNoKinds       = "none" // of the questions
	sessionNonceLength   = 26     // of rand.Text
	sessionNonceAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
)

// newSessionID is the id of a session with a client that answers some kinds of questions.
func newSessionID(declared []string) string {
	kinds := sessionNoKinds
	if len(declared) > 0 {
		kinds = strings.Join(declared, "+")
	}
	return sessionVersion + "." + kinds + "." + rand.Text()
}

// parseSessionID reads from a session's id which questions its client has declared to
// answer. A client whose request has no session gets no questions.
func parseSessionID(h http.Header) (declared []string, f *rpcError) {
	values := h[wire.HeaderSession]
	if len(values) == 0 || len(values) == 1 && values[0] == "" {
		return nil, nil
	}
	unknown := newError(jsonrpc.CodeRequest, "There is no such session: begin another with %s.",
		wire.MethodInitialize).withStatus(http.StatusNotFound)
	parts := strings.Split(values[0], ".")
	if len(values) > 1 || len(parts) != 3 || parts[0] != sessionVersion ||
		len(parts[2]) != sessionNonceLength || strings.Trim(parts[2], sessionNonceAlphabet) != "" {
		return nil, unknown
	}
	if parts[1] == sessionNoKinds {
		return nil, nil
	}
	declared = strings.Split(parts[1], "+")
	last := -1
	for _, kind := range declared {
		at := slices.Index(tool.QuestionKinds(), kind)
		if at <= last { // it is unknown, or not in the order in which ids are made
			return nil, unknown
		}
		last = at
	}
	return declared, nil
}

// negotiatedRevision is the revision of the session that an initialize begins.
func (m *message) negotiatedRevision() string {
	if version := stringOf(m.params["protocolVersion"]); slices.Contains(revisions[1:], version) {
		return version
	}
	return wire.Revision2025
}

// declaredKinds are the kinds of questions that a client older than 2026-07-28 answers, as
// its initialize says. An invalid capability declares nothing.
func (m *message) declaredKinds() []string {
	capabilities, _ := m.params["capabilities"].(map[string]any)
	declared, fault := questionKinds(capabilities)
	if fault != nil {
		return nil
	}
	if m.negotiatedRevision() != wire.Revision2025 { // forms are all that there was
		declared = slices.DeleteFunc(declared, func(kind string) bool { return kind == tool.QuestionURL })
	}
	return declared
}

// readSession is the client of a request over HTTP, where it can be asked something, and the id
// of its session.
func (r request) readSession() (_ *elicitor, session string, _ *rpcError) {
	if r.modern || r.Method == wire.MethodInitialize {
		return nil, "", nil // the request itself declares it
	}
	declared, fault := parseSessionID(r.headers)
	if fault != nil {
		return nil, "", fault
	}
	session = r.headers.Get(wire.HeaderSession)
	if len(declared) == 0 || r.elicitor == nil {
		return nil, session, nil
	}
	r.elicitor.kinds = declared
	return r.elicitor, session, nil
}

// inSession makes the calls of the request those of a session, which may be empty. Tools get a
// digest of its id: they are not to act in it.
func (r *request) inSession(id string) {
	if id != "" {
		digest := sha256.Sum256([]byte(id))
		r.admission = r.admission.InSession("session_" + hex.EncodeToString(digest[:16]))
	}
}
