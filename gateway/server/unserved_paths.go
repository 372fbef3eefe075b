package server

import (
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/callgate/callgate/refusal"
)

// API is a wire protocol with many paths, of which a face serves some. Its clients read a
// refusal at every path of it in its own shape, also where no route takes the request.
type API struct {
	// Prefixes are paths of the API; each stands for itself and for all paths below it.
	Prefixes []string
	// Header is one that all requests of the API have, as net/http writes its name: for paths
	// that two APIs have, the one whose header is there comes first. Empty is none.
	Header string
	// Refuse writes a refusal, as that of a Route.
	Refuse func(*gin.Context, *refusal.Error)
	// Advice is a sentence for a client that asks for what no route takes: what is served of the
	// API, and what to do about the rest.
	Advice string
}

// MountAPI has requests that no route takes refused in the shape of their API. Of several, the
// one with the longest prefix of the path holds. It must not be called once requests are served.
func (s *Server) MountAPI(a API) { s.apis = append(s.apis, a) }

// refuseUnserved refuses a request that no route takes, as the routes of its path do, else as its
// API does, with the advice of its API.
func (s *Server) refuseUnserved(c *gin.Context, code refusal.Code, message string) {
	refuse, api := s.options.Refuse, s.apiOf(c.Request)
	if api != nil {
		refuse = api.Refuse
		if api.Advice != "" {
			message += " " + api.Advice
		}
	}
	if mounted, ok := s.refusals[c.Request.URL.Path]; ok {
		refuse = mounted
	}
	if api == nil && code == refusal.NotFound {
		message += " " + whereToGo
	}
	refuse(c, refusal.New(code, message))
}

// apiOf returns the API that a request belongs to; nil where it belongs to none.
func (s *Server) apiOf(r *http.Request) *API {
	var found *API
	longest := 0
	for i := range s.apis {
		a := &s.apis[i]
		length := 0
		if a.Header == "" || len(r.Header[a.Header]) > 0 {
			length = a.prefix(r.URL.Path)
		}
		if length > 0 && a.Header != "" {
			length++ // its header is there, so it is before another of the same prefix
		}
		if length > longest {
			found, longest = a, length
		}
	}
	return found
}

// prefix returns the length of the longest prefix that a path has.
func (a *API) prefix(path string) int {
	longest := 0
	for _, p := range a.Prefixes {
		if rest, ok := strings.CutPrefix(path, p); ok && (rest == "" || rest[0] == '/') {
			longest = max(longest, len(p))
		}
	}
	return longest
}
