package configs

import (
	"github.com/callgate/callgate/configs/document"
)

// checkRules refuses rows of the policy that ask by a rule which is not there: nobody could
// ever approve their calls.
func (l *loader) checkRules(c *Config) {
	if c.Policy == nil {
		return
	}
	for _, r := range c.Policy.AskingRows() {
		l.report.Add(&document.Fault{File: r.File, Line: r.Line, Message: "found ask:" + r.Rule + "; expected the name of a rule, and there are none"})
	}
}
