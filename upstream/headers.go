package upstream

import (
	"errors"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/callgate/callgate/internal/ascii"
	"github.com/callgate/callgate/internal/netx"
)

// Content types of answers.
const (
	typeJSON   = "application/json"
	typeStream = "text/event-stream"
)

// Values of headers that every request has.
var (
	contentJSON      = []string{typeJSON}
	contentStream    = []string{typeStream}
	identityEncoding = []string{"identity"}
	userAgent        = []string{"callgate"}
)

// ownHeaders are headers of a request that only this client sets: those of the connection, of
// the body, of what is accepted, and of credentials.
var ownHeaders = map[string]bool{
	"Accept": true, "Accept-Encoding": true, "Authorization": true, "Connection": true, "Content-Encoding": true,
	"Content-Length": true, "Content-Type": true, "Cookie": true, "Expect": true, "Host": true, "Keep-Alive": true,
	"Proxy-Authorization": true, "Proxy-Connection": true, "Te": true, "Trailer": true, "Transfer-Encoding": true,
	"Upgrade": true, "User-Agent": true, "X-Api-Key": true,
}

// Bounds of the headers of an answer that are kept.
const (
	maxKeptHeaders = 64
	maxHeaderValue = 1 << 10
)

// keptNames are headers of an answer for the application: what to wait for, how much is left, and
// by which id the provider knows the request. None of them names the operator's account.
var keptNames = map[string]bool{
	"Request-Id": true, "X-Request-Id": true, "Retry-After": true, "Retry-After-Ms": true, "X-Should-Retry": true,
}

// keptPrefixes are beginnings of such headers (AM-63).
var keptPrefixes = []string{"Anthropic-Ratelimit-", "X-Ratelimit-"}

// keptHeaders returns the headers of an answer that are for the application: those of keptNames
// and keptPrefixes with one value each, of at most 1,024 bytes, in which none of the secrets stands; nil where there
// are none.
func keptHeaders(header http.Header, secrets []string) (kept http.Header) {
	for name, values := range header {
		if len(kept) < maxKeptHeaders && len(values) == 1 && isKeptName(name) && isKeptValue(values[0], secrets) {
			if kept == nil {
				kept = http.Header{}
			}
			kept[name] = values
		}
	}
	return kept
}

func isKeptName(name string) bool {
	if keptNames[name] {
		return true
	}
	for _, prefix := range keptPrefixes {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

func isKeptValue(value string, secrets []string) bool {
	return len(value) <= maxHeaderValue && ascii.IsPrintable(value) && !mentions([]byte(value), secrets)
}

// hasContentType reports whether a body may be of the wanted type, in UTF-8. Some servers state no
// type, one that says nothing of the form, or both of those that they can send: then it is taken for
// what was asked, and its reading decides.
func hasContentType(stated []string, wanted string) bool {
	if len(stated) == 1 && stated[0] == wanted {
		return true
	}
	named, other := false, false
	for _, value := range strings.Split(strings.Join(stated, ","), ",") {
		if strings.TrimSpace(value) == "" {
			continue
		}
		media, parameters, err := mime.ParseMediaType(value)
		switch {
		case err != nil && !errors.Is(err, mime.ErrInvalidMediaParameter), !netx.IsUTF8(parameters["charset"]):
			return false
		case media == wanted, slices.Contains(formlessTypes, media), wanted == typeJSON && strings.HasSuffix(media, "+json"):
			named = true
		case media == typeJSON, media == typeStream:
			other = true
		default:
			return false
		}
	}
	return named || !other
}

// formlessTypes are types that servers state where they mean none.
var formlessTypes = []string{"text/plain", "application/octet-stream"}
