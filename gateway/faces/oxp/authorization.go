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

// approvalID is the id of the challenge of a call that waits for people to approve it.
const approvalID = "approval"

// challenges returns the challenges of a call, with the gateway's own URLs for their
// status: a caller of the gateway need not ask its tools' servers. A call that waits for people
// has one, if the page is known where they decide.
func (f *Face) challenges(o calls.Outcome) []challenge {
	all := make([]challenge, len(o.Challenges))
	for i, c := range o.Challenges {
		all[i] = challenge{ID: c.ID, URL: c.URL}
		if c.CheckURL != "" {
			all[i].CheckURL = f.checkURL(o.CallID, i)
		}
	}
	if o.ApprovalRequest != nil {
		if page := f.options.Executor.Kernel.ApprovalURL(o.ApprovalRequest.ID); page != "" {
			all = append(all, challenge{approvalID, page, f.checkURL(o.ApprovalRequest.ID, 0)})
		}
	}
	return all
}

// checkURL is the URL for the status of a challenge; empty if the gateway's own is not known.
func (f *Face) checkURL(id string, nth int) string {
	if f.options.URL == nil || f.options.URL() == "" {
		return ""
	}
	return fmt.Sprintf("%s%s%s/%d", f.options.URL(), pathChecks, id, nth)
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
