package upstream

import (
	"mime"
	"net/http"
	"strings"

	"github.com/callgate/callgate/internal/ascii"
)

// Content types of answers.
const (
	typeJSON   = "application/json"
	typeStream = "text/event-stream"
)

// Values of headers that every request has.
var (
	contentJSON      = []string{typeJSON}
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
// and keptPrefixes with one value each, of at most 1,024 bytes, in which none of the secrets stands.
func keptHeaders(header http.Header, secrets []string) http.Header {
	kept := http.Header{}
	for name, values := range header {
		if len(kept) < maxKeptHeaders && len(values) == 1 && isKeptName(name) && isKeptValue(values[0], secrets) {
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

// hasContentType reports whether a body is of the wanted type, in UTF-8.
func hasContentType(stated []string, wanted string) bool {
	if len(stated) != 1 {
		return false
	}
	if stated[0] == wanted {
		return true
	}
	media, parameters, err := mime.ParseMediaType(stated[0])
	charset, other := parameters["charset"]
	return err == nil && media == wanted && (!other || strings.EqualFold(charset, "utf-8"))
}
