package console

import (
	"net/http"

	"github.com/callgate/callgate/candidate"
	"github.com/callgate/callgate/gateway/admin"
	"github.com/callgate/callgate/refusal"
)

func (c *Console) limits(w http.ResponseWriter, r *request) *refusal.Error {
	query := selected(r, "kind", "after")
	list, refused := ask[admin.Limits](c, r, admin.Ask{Method: http.MethodGet, Path: "/v1/limits", Query: query})
	if refused != nil {
		return refused
	}
	c.show(w, r, http.StatusOK, "limits", page{Title: "Limits and breakers", Live: "decisions config standing", Data: list, Form: query})
	return nil
}

// shownGroups is how many groups of differences the page of the candidate has.
const shownGroups = 100

// candidatePage is the page of the candidate.
type candidatePage struct {
	candidate.Report
	Omitted int // groups that are not on the page
}

func (c *Console) candidate(w http.ResponseWriter, r *request) *refusal.Error {
	report, refused := ask[candidate.Report](c, r, admin.Ask{Method: http.MethodGet, Path: "/v1/candidate"})
	if refused != nil {
		return refused
	}
	shown := candidatePage{Report: report}
	if n := len(report.Groups); n > shownGroups {
		shown.Groups, shown.Omitted = report.Groups[:shownGroups], n-shownGroups
	}
	c.show(w, r, http.StatusOK, "candidate", page{Title: "Candidate", Live: "decisions config", Data: shown})
	return nil
}

func (c *Console) running(w http.ResponseWriter, r *request) *refusal.Error {
	list, refused := ask[admin.RunningCalls](c, r, admin.Ask{Method: http.MethodGet, Path: "/v1/calls", Query: selected(r, "after")})
	if refused != nil {
		return refused
	}
	c.show(w, r, http.StatusOK, "running", page{Title: "Calls under way", Live: "decisions", Data: list})
	return nil
}
