package server

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/threads"
	"github.com/callgate/callgate/identity"
	"github.com/callgate/callgate/refusal"
)

// The headers of every face, as net/http writes their names.
const (
	HeaderAgent     = "Callgate-Agent"
	HeaderWorkspace = "Callgate-Workspace"
	HeaderProject   = "Callgate-Project"
	HeaderID        = "Callgate-Id"
	HeaderThread    = "Callgate-Thread"
	// HeaderAncestors lists the threads that the thread came from, the oldest first.
	HeaderAncestors = "Callgate-Thread-Ancestors"
	HeaderUser      = "Callgate-User"
	HeaderCallID    = "Callgate-Call-Id" // of an answer
	HeaderRunID     = "Callgate-Run-Id"  // of an answer
	HeaderKey       = "Idempotency-Key"
	// HeaderToolsReplaced, of an answer, lists the tools of the request whose schemas the registry
	// states otherwise, or were changed so that they can be judged. HeaderToolsLeftOut lists those that
	// cannot be judged and are not offered. The line of the request in the log lists both too.
	HeaderToolsReplaced = "Callgate-Tools-Replaced"
	HeaderToolsLeftOut  = "Callgate-Tools-Left-Out"

	headerAPIKey = "X-Api-Key"
	headerPrefix = "Callgate-"
	headerTrace  = "Traceparent"
)

// headers are those of Callgate that mean something on a route.
func headers(r Route) []string {
	return slices.Concat([]string{HeaderAgent, HeaderWorkspace, HeaderProject}, r.ExtraHeaders,
		[]string{HeaderID, HeaderThread, HeaderAncestors, HeaderUser})
}

// MaxValueBytes bounds the value of a header of Callgate, and of the member of a body that may
// replace it.
const MaxValueBytes = 1024

func bad(format string, args ...any) *refusal.Error {
	return refusal.New(refusal.BadRequest, fmt.Sprintf(format, args...))
}

// readHeaders reads the credential and the subject of a request from its headers into
// w.request.
func (e *endpoint) readHeaders(r *http.Request, w *responseWriter) *refusal.Error {
	if e.Public {
		r.Header.Del("Authorization")
	}
	if refused := e.checkHeaders(r); refused != nil {
		return refused
	}
	value := func(name string) string { return first(r.Header[name]) }
	w.request.Request = gateway.Request{
		Subject: gateway.Subject{Agent: value(HeaderAgent), Workspace: value(HeaderWorkspace), Project: value(HeaderProject)},
		ID:      value(HeaderID), Thread: value(HeaderThread), User: value(HeaderUser),
		CallerAddress: remote(r.RemoteAddr), TraceID: w.trace.id, ParentID: w.trace.parent, Sampled: w.trace.sampled(),
		Judged: &w.judged,
	}
	refused := readAncestors(r, &w.request.Request)
	if refused != nil {
		return refused
	}
	w.request.Credential, refused = e.credential(r)
	return refused
}

// readAncestors reads the names of HeaderAncestors, which commas separate.
func readAncestors(r *http.Request, into *gateway.Request) *refusal.Error {
	stated := r.Header[HeaderAncestors]
	if len(stated) == 0 {
		return nil
	}
	// One more than there may be is enough to refuse them.
	for _, name := range strings.SplitN(stated[0], ",", threads.MaxAncestors+1) {
		into.Ancestors = append(into.Ancestors, strings.Trim(name, " \t"))
	}
	if err := threads.CheckAncestors(into.Thread, into.Ancestors); err != nil {
		return bad("The header %s is not valid: %v.", HeaderAncestors, err)
	}
	return nil
}

// credential reads the credential of a request. Two places of it must agree: otherwise two
// readers might take the caller for two others.
func (e *endpoint) credential(r *http.Request) (string, *refusal.Error) {
	bearer := ""
	if values := r.Header["Authorization"]; len(values) > 0 {
		if bearer = identity.Bearer(values[0]); bearer == "" && !e.AnyScheme {
			return "", refusal.New(refusal.Unauthenticated, "The header Authorization must be Bearer and one credential.")
		}
	}
	keys := r.Header[headerAPIKey]
	if !e.APIKey || len(keys) == 0 {
		return bearer, nil
	}
	key := identity.Bearer("Bearer " + keys[0])
	switch {
	case key == "":
		return "", refusal.New(refusal.Unauthenticated, "The header x-api-key must be one credential.")
	case bearer != "" && key != bearer:
		return "", refusal.New(refusal.Unauthenticated,
			"The headers x-api-key and Authorization hold different credentials; send one, or the same in both.")
	}
	return key, nil
}

// checkHeaders refuses headers that two readers could read differently.
func (e *endpoint) checkHeaders(r *http.Request) *refusal.Error {
	repeated := false
	for _, values := range r.Header {
		repeated = repeated || len(values) > 1
	}
	if repeated {
		// Two readers of two values might each take another.
		for _, name := range e.single {
			if len(r.Header[name]) > 1 {
				return bad("The header %s stands more than once; expected it at most once.", name)
			}
		}
	}
	if refused := e.checkQuery(r.URL.RawQuery); refused != nil {
		return refused
	}
	ours := false
	for name := range r.Header {
		if !mayBeOurs(name) {
			continue
		}
		ours = true
		// A misspelt header must not be ignored: the default would apply instead. Some
		// senders write underscores for the hyphens of a name, or have them written.
		hyphened := http.CanonicalHeaderKey(strings.ReplaceAll(name, "_", "-"))
		if name != hyphened && hyphened == HeaderKey {
			return bad("There is a header %s; expected %s.", name, HeaderKey)
		}
		if strings.HasPrefix(hyphened, headerPrefix) && name != HeaderCallID && name != HeaderRunID && name != HeaderToolsReplaced &&
			name != HeaderToolsLeftOut && !slices.Contains(e.known, name) {
			return bad("There is a header %s... that means nothing here; expected one of %s.", headerPrefix, strings.Join(e.known, ", "))
		}
	}
	if !ours {
		return nil
	}
	for _, name := range e.known {
		if v := first(r.Header[name]); !utf8.ValidString(v) || len(v) > MaxValueBytes {
			return bad("The header %s is not UTF-8, or longer than %d bytes.", name, MaxValueBytes)
		}
	}
	return nil
}

// checkQuery refuses a query with a name that the route does not read, or with one twice.
func (e *endpoint) checkQuery(raw string) *refusal.Error {
	if raw == "" {
		return nil
	}
	if len(e.Query) == 0 {
		return bad("The path has a query; nothing is said by one here.")
	}
	query, err := url.ParseQuery(raw)
	if err != nil || len(raw) > MaxValueBytes {
		return bad("The query of the path cannot be read, or is longer than %d bytes.", MaxValueBytes)
	}
	for name, values := range query {
		if !slices.Contains(e.Query, name) || len(values) > 1 {
			return bad("The query of the path may have each of these once, and nothing else: %s.", strings.Join(e.Query, ", "))
		}
	}
	return nil
}

// mayBeOurs reports whether a header may be, or may be meant to be, one of Callgate, or
// HeaderKey: all others need no closer look.
func mayBeOurs(name string) bool {
	const prefix, key = len(headerPrefix) - 1, len("Idempotency")
	return len(name) > prefix && strings.EqualFold(name[:prefix], headerPrefix[:prefix]) ||
		len(name) == len(HeaderKey) && strings.EqualFold(name[:key], HeaderKey[:key])
}

// remote is the address of a caller without its port. One IPv6 network of 64
// bits is one caller, since one host may have all of its addresses.
func remote(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = address
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return "unknown"
	}
	ip = ip.Unmap().WithZone("")
	if ip.Is6() {
		if prefix, err := ip.Prefix(64); err == nil {
			return prefix.Masked().String()
		}
	}
	return ip.String()
}

// first returns the first value of a header, or an empty one.
func first(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return values[0]
}
