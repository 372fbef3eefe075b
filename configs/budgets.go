package configs

import (
	"fmt"
	"strings"

	"github.com/callgate/callgate/configs/document"
	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/ratelimit/budget"
	"github.com/callgate/callgate/upstream"
)

// checkBudgets checks budgets against prices and models, and makes them those of the configuration.
func (l *loader) checkBudgets(limits document.Node, s *budget.Set, models []upstream.Definition, c *Config) {
	if len(s.Budgets) == 0 || len(l.report.Faults) > 0 {
		return
	}
	if c.Redis == nil {
		limits.At("/budgets").Warn(
			"budgets without the key redis are counted by this process only, and forget what was spent when it ends")
	}
	if c.Limits.OnStoreLoss == ratelimit.LossLocal {
		s.Replicas = c.Limits.Replicas
	}
	for i := range s.Budgets {
		b, at := &s.Budgets[i], limits.At(fmt.Sprintf("/budgets/%d", i))
		if stated := at.StringAt("currency"); b.Limit.Micros > 0 && stated != "" && c.PricesFile != "" && stated != s.Currency {
			at.At("/currency").Fail("found the currency %s; expected that of the prices, %s", stated, s.Currency)
		}
		if b.Limit.Micros == 0 {
			continue
		}
		if c.PricesFile == "" {
			at.At("/money").Fail(
				"found a budget of money without prices; expected the key prices of the main file, with a file of what the models cost")
			continue
		}
		for _, d := range models {
			for _, m := range d.Models {
				_, priced := s.Price(m.ID)
				if !priced && !strings.HasSuffix(m.ID, "*") && b.CoversModel(m.ID) {
					at.At("/money").Fail("found a budget of money for the model %q, which has no price; expected one in %s", m.ID,
						c.PricesFile)
				}
			}
		}
	}
	c.Budgets = s
}
