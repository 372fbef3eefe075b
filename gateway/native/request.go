package native

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/gin-gonic/gin"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/identity"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/refusal"
)

// The headers of the face, as net/http writes their names.
const (
	headerPrefix    = "Callgate-"
	headerAgent     = "Callgate-Agent"
	headerWorkspace = "Callgate-Workspace"
	headerProject   = "Callgate-Project"
	headerFinish    = "Callgate-Finish-Reason"
	headerID        = "Callgate-Id"
	headerThread    = "Callgate-Thread"
	headerUser      = "Callgate-User"
	headerCallID    = "Callgate-Call-Id"
	headerKey       = "Idempotency-Key"
	headerTrace     = "Traceparent"
)

// single are the headers that must stand at most once: two readers of two values
// might each take another.
var single = []string{
	"Authorization", "Content-Type", "Content-Encoding", headerAgent, headerWorkspace, headerProject, headerFinish, headerID, headerThread, headerUser, headerKey, headerTrace,
}

// subjectHeaders stand in for the members of a JSON body.
var subjectHeaders = []string{headerAgent, headerWorkspace, headerProject, headerFinish, headerID, headerThread, headerUser}

// asked is a request as it was read.
type asked struct {
	gateway.Request
	id json.RawMessage // to be echoed; nil when there is none
}

func bad(format string, args ...any) *refusal.Error {
	return refusal.New(refusal.BadRequest, fmt.Sprintf(format, args...))
}

// readHead reads who asks, and for whom as far as headers say it.
func (f *Face) readHead(c *gin.Context) (asked, *refusal.Error) {
	r := c.Request
	for _, name := range single {
		if len(r.Header[http.CanonicalHeaderKey(name)]) > 1 {
			return asked{}, bad("The header %s stands more than once; expected it at most once.", name)
		}
	}
	if r.URL.RawQuery != "" {
		return asked{}, bad("The path has a query; nothing is said by one here.")
	}
	for name := range r.Header {
		// A header that is misspelt must not leave what it says to the defaults.
		if strings.HasPrefix(name, headerPrefix) && name != headerCallID && !slices.Contains(subjectHeaders, name) {
			return asked{}, bad("There is a header %s... that means nothing here; expected one of %s.", headerPrefix, strings.Join(subjectHeaders, ", "))
		}
	}
	for _, name := range subjectHeaders {
		if v := r.Header.Get(name); !utf8.ValidString(v) || len(v) > maxHeaderValue {
			return asked{}, bad("The header %s is not UTF-8, or longer than %d bytes.", name, maxHeaderValue)
		}
	}
	a := asked{Request: gateway.Request{
		Subject: gateway.Subject{Agent: r.Header.Get(headerAgent), Workspace: r.Header.Get(headerWorkspace), Project: r.Header.Get(headerProject)},
		ID:      r.Header.Get(headerID), Thread: r.Header.Get(headerThread),
		Caller: remote(r.RemoteAddr), TraceID: c.GetString(keyTrace),
	}}
	if credentials := r.Header["Authorization"]; len(credentials) > 0 {
		if a.Credential = identity.Bearer(credentials[0]); a.Credential == "" {
			return asked{}, refusal.New(refusal.Unauthenticated, "The header Authorization must be Bearer and one credential.")
		}
	}
	if a.ID != "" {
		a.id, _ = json.Marshal(a.ID) // a string cannot fail
	}
	return a, nil
}

// maxHeaderValue bounds what a header may say of a request.
const maxHeaderValue = 1024

// read reads a request with a completion, as JSON or as it is.
func (f *Face) read(c *gin.Context, body io.ReadCloser) (asked, *refusal.Error) {
	a, refused := f.readHead(c)
	if refused != nil {
		return a, refused
	}
	r := c.Request
	media, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if charset := params["charset"]; err != nil || media != "application/json" && media != "text/plain" || charset != "" && !strings.EqualFold(charset, "utf-8") {
		return a, refusal.New(refusal.UnsupportedMediaType, "The Content-Type must be application/json, or text/plain for the completion as it is, in UTF-8.")
	}
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return a, refusal.New(refusal.UnsupportedMediaType, "The Content-Encoding must be identity.")
	}
	output := f.options.Kernel.Output()
	limit := MaxBody(output.MaxBytes)
	data, refused := f.readAll(c, body, limit)
	if refused != nil {
		return a, refused
	}
	if media == "text/plain" {
		a.Inputs = []gateway.Input{{Completion: data, Truncated: parser.Truncates(r.Header.Get(headerFinish))}}
		return a, nil
	}
	for _, name := range subjectHeaders {
		if _, there := r.Header[name]; there {
			return a, bad("The header %s is for text/plain; a JSON body says it itself.", name)
		}
	}
	b, err := ReadBody(data)
	if err != nil {
		return a, bad("The body is not a request: %v.", err)
	}
	a.Subject = gateway.Subject{Agent: b.Agent, Workspace: b.Workspace, Project: b.Project}
	a.id, a.Thread = b.ID, b.Thread
	if b.ID != nil {
		_ = json.Unmarshal(b.ID, &a.ID) // it is a string
	}
	a.Inputs = []gateway.Input{{Completion: b.Completion, Truncated: parser.Truncates(b.FinishReason)}}
	return a, nil
}

// readAll reads a body of bounded size within bounded time.
func (f *Face) readAll(c *gin.Context, body io.ReadCloser, limit int) ([]byte, *refusal.Error) {
	tooLarge := refusal.New(refusal.RequestTooLarge, fmt.Sprintf("The body is longer than %d bytes.", limit))
	if c.Request.ContentLength > int64(limit) {
		c.Header("Connection", "close") // what follows is not read
		return nil, tooLarge
	}
	// A connection that cannot bear a deadline is one that a test made.
	_ = http.NewResponseController(c.Writer).SetReadDeadline(time.Now().Add(f.options.BodyTime))
	data, err := io.ReadAll(http.MaxBytesReader(c.Writer, body, int64(limit)))
	var size *http.MaxBytesError
	switch {
	case errors.As(err, &size):
		return nil, tooLarge
	case errors.Is(err, errHeld):
		c.Header("Connection", "close")
		return nil, f.shed()
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, bad("The body did not arrive in time.")
	case err != nil:
		return nil, bad("The body could not be read to its end.")
	}
	return data, nil
}

// maxKey bounds an idempotency key.
const maxKey = 255

// idempotencyKey reads the key of a request: printable ASCII of bounded length.
func idempotencyKey(r *http.Request) (string, *refusal.Error) {
	values := r.Header[headerKey]
	if len(values) == 0 {
		return "", nil
	}
	key := values[0]
	if key == "" || len(key) > maxKey || strings.ContainsFunc(key, func(c rune) bool { return c < '!' || c > '~' }) {
		return "", bad("The header %s must be 1 to %d printable ASCII characters without spaces.", headerKey, maxKey)
	}
	return key, nil
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
