package responses

import (
	"net/http"

	"github.com/callgate/callgate/gateway/server"
	"github.com/callgate/callgate/gateway/turns"
)

// Face answers requests. It is safe for concurrent use.
type Face struct {
	options turns.Options
	ledger  *ledger
}

// New returns the face of a kernel.
func New(options turns.Options) *Face { return &Face{options: options, ledger: newLedger()} }

// maxBodyBytes is how long a request may be, and how much a run may add to it.
const maxBodyBytes = 8 << 20

// Mount mounts the routes of the face. All other paths of the API below /v1/responses are
// refused: a stored response was never judged (RS-71).
func (f *Face) Mount(s *server.Server) {
	for path, serve := range map[string]func(*Face) handler{
		"/v1/responses":              func(f *Face) handler { return f.respond },
		"/v1/responses/input_tokens": func(f *Face) handler { return f.countTokens },
	} {
		s.Mount(server.Route{
			Method: http.MethodPost, Path: path, Refuse: refuse, Serve: serve(f),
			MaxBody: func() int { return maxBodyBytes }, ExtraHeaders: []string{turns.HeaderMode},
		})
	}
}
