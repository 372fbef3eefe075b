package oxp

import (
	"fmt"
	"net/http"
	"strconv"

	"github.com/gin-gonic/gin"

	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/gateway/server"
	"github.com/callgate/callgate/refusal"
)

// challenge is an action that a person must take before a call can pass.
type challenge struct {
	ID       string `json:"id"`
	URL      string `json:"url"`
	CheckURL string `json:"check_url,omitempty"`
}

// challenges returns the challenges of a call, with the gateway's own URLs for their
// status: a caller of the gateway need not ask its tools' servers.
func (f *Face) challenges(o calls.Outcome) []challenge {
	base := ""
	if f.options.URL != nil {
		base = f.options.URL()
	}
	all := make([]challenge, len(o.Challenges))
	for i, c := range o.Challenges {
		all[i] = challenge{ID: c.ID, URL: c.URL}
		if base != "" && c.CheckURL != "" {
			all[i].CheckURL = fmt.Sprintf("%s%s%s/%d", base, pathChecks, o.CallID, i)
		}
	}
	return all
}

// authorization answers with the status of one authorization.
func (f *Face) authorization(c *gin.Context, a server.Request) {
	nth, err := strconv.Atoi(c.Param("nth"))
	if err != nil || strconv.Itoa(nth) != c.Param("nth") {
		nth = -1 // none
	}
	status, err := f.options.Executor.AuthorizationStatus(c.Request.Context(), a.Request, c.Param("id"), nth)
	if err != nil {
		f.refuse(c, refusal.From(refusal.Execute, err))
		return
	}
	f.write(c, http.StatusOK, map[string]string{"status": status})
}
