package console

import (
	"net/http"

	"github.com/callgate/callgate/gateway/faces/admin"
	"github.com/callgate/callgate/policy/lab"
	"github.com/callgate/callgate/refusal"
)

func (c *Console) limits(w http.ResponseWriter, r *request) *refusal.Error {
	query := selected(r, "kind", "after")
	list := admin.Ask{Method: http.MethodGet, Path: "/v1/limits", Query: query}
	return showAnswer(c, w, r, "limits", list, func(list admin.Limits) page {
		return page{Title: "Limits and breakers", Live: "decisions config standing", Data: list, Form: query}
	})
}

// shownGroups is how many groups of differences the page of the candidate has.
const shownGroups = 100

// candidatePage is the page of the candidate.
type candidatePage struct {
	lab.CandidateReport
	Omitted int // groups that are not on the page
}

func (c *Console) candidate(w http.ResponseWriter, r *request) *refusal.Error {
	one := admin.Ask{Method: http.MethodGet, Path: "/v1/candidate"}
	return showAnswer(c, w, r, "candidate", one, func(report lab.CandidateReport) page {
		bounded := candidatePage{CandidateReport: report}
		if n := len(report.Groups); n > shownGroups {
			bounded.Groups, bounded.Omitted = report.Groups[:shownGroups], n-shownGroups
		}
		return page{Title: "Candidate", Live: "decisions config", Data: bounded}
	})
}

func (c *Console) running(w http.ResponseWriter, r *request) *refusal.Error {
	list := admin.Ask{Method: http.MethodGet, Path: "/v1/calls", Query: selected(r, "after")}
	return showAnswer(c, w, r, "running", list, func(list admin.RunningCalls) page {
		return page{Title: "Calls under way", Live: "decisions", Data: list}
	})
}
