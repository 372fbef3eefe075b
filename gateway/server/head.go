package server

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/gin-gonic/gin"

	"github.com/callgate/callgate/gateway"
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
	HeaderUser      = "Callgate-User"
	HeaderCallID    = "Callgate-Call-Id" // of an answer
	HeaderKey       = "Idempotency-Key"

	headerPrefix = "Callgate-"
	headerTrace  = "Traceparent"
)

// headers are those of Callgate that mean something on a route.
func headers(r Route) []string {
	return slices.Concat([]string{HeaderAgent, HeaderWorkspace, HeaderProject}, r.ExtraHeaders, []string{HeaderID, HeaderThread, HeaderUser})
}

// MaxValueBytes bounds the value of a header of Callgate, and of the member of a body that may
// replace it.
const MaxValueBytes = 1024

func bad(format string, args ...any) *refusal.Error {
	return refusal.New(refusal.BadRequest, fmt.Sprintf(format, args...))
}

// readHead reads the credential and the subject of a request from its headers.
func readHead(c *gin.Context, route Route) (Request, *refusal.Error) {
	r, known := c.Request, headers(route)
	if route.Public {
		r.Header.Del("Authorization")
	}
	// Two readers of two values might each take another.
	for _, name := range slices.Concat([]string{"Authorization", "Content-Type", "Content-Encoding"}, known, []string{HeaderKey, headerTrace}) {
		if len(r.Header[name]) > 1 {
			return Request{}, bad("The header %s stands more than once; expected it at most once.", name)
		}
	}
	if r.URL.RawQuery != "" {
		return Request{}, bad("The path has a query; nothing is said by one here.")
	}
	for name := range r.Header {
		// A misspelt header must not be ignored: the default would apply instead. Some
		// senders write underscores for the hyphens of a name, or have them written.
		hyphened := http.CanonicalHeaderKey(strings.ReplaceAll(name, "_", "-"))
		if name != hyphened && hyphened == HeaderKey {
			return Request{}, bad("There is a header %s; expected %s.", name, HeaderKey)
		}
		if strings.HasPrefix(hyphened, headerPrefix) && name != HeaderCallID && !slices.Contains(known, name) {
			return Request{}, bad("There is a header %s... that means nothing here; expected one of %s.", headerPrefix, strings.Join(known, ", "))
		}
	}
	for _, name := range known {
		if v := r.Header.Get(name); !utf8.ValidString(v) || len(v) > MaxValueBytes {
			return Request{}, bad("The header %s is not UTF-8, or longer than %d bytes.", name, MaxValueBytes)
		}
	}
	t := traceOf(c)
	a := Request{Request: gateway.Request{
		Subject: gateway.Subject{Agent: r.Header.Get(HeaderAgent), Workspace: r.Header.Get(HeaderWorkspace), Project: r.Header.Get(HeaderProject)},
		ID:      r.Header.Get(HeaderID), Thread: r.Header.Get(HeaderThread), User: r.Header.Get(HeaderUser),
		CallerAddress: remote(r.RemoteAddr), TraceID: t.id, ParentID: t.parent, Sampled: t.sampled(),
	}}
	if credentials := r.Header["Authorization"]; len(credentials) > 0 {
		if a.Credential = identity.Bearer(credentials[0]); a.Credential == "" && !route.AnyScheme {
			return Request{}, refusal.New(refusal.Unauthenticated, "The header Authorization must be Bearer and one credential.")
		}
	}
	return a, nil
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
