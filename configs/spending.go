package configs

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/callgate/callgate/configs/document"
	"github.com/callgate/callgate/ratelimit/budget"
)

const (
	// maxBudgets bounds the budgets of a configuration, which are labels of metrics.
	maxBudgets = 100
	// maxNames bounds the patterns of one key of a budget, and the prices.
	maxNames = 1000
)

var (
	// budgetName is the form of a budget's name: of metrics, of keys in Redis and of messages.
	budgetName   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$`)
	currencyCode = regexp.MustCompile(`^[A-Z]{3}$`)
)

// budgetFields are the keys of the limits file about budgets of tokens and money.
func budgetFields(s *budget.Set) []document.FieldReader {
	return document.Fields(s,
		document.Field("budgets", func(n document.Node) {
			n.List("budgets", func(i int, item document.Node) {
				if i == maxBudgets {
					item.Fail("found more than %d budgets; expected fewer, with per: agent, principal or project for what differs only in a name", maxBudgets)
				}
				b := readSpending(item)
				if slices.ContainsFunc(s.Budgets, func(other budget.Budget) bool { return other.Name == b.Name && b.Name != "" }) {
					item.At("/name").Fail("found the budget %q twice; expected each name once", b.Name)
				}
				s.Budgets = append(s.Budgets, b)
			})
		}),
	)
}

// readSpending reads a budget of tokens and money.
func readSpending(n document.Node) budget.Budget {
	b := budget.Budget{Per: budget.PerAll, Zone: time.UTC}
	ok := n.Object(
		document.Field("name", func(n document.Node) {
			n.Matching("the name of a budget", budgetName.String())
			if n.Text("the name of a budget", &b.Name) && !budgetName.MatchString(b.Name) {
				n.Fail("found the name %q; expected at most 63 letters, digits, _, . and -, the first a letter or a digit", b.Name)
			}
		}),
		patternsField("agents", "names of agents, in which * stands for any text", &b.Agents),
		patternsField("principals", "names of principals, in which * stands for any text", &b.Principals),
		patternsField("projects", "workspace/project, in which * stands for any text", &b.Projects),
		patternsField("models", "names of models, in which * stands for any text", &b.Models),
		document.Choice("per", "what has a counter of its own", &b.Per, budget.PerAll, budget.PerAgent, budget.PerPrincipal,
			budget.PerProject),
		document.Choice("window", "how long the budget lasts", &b.Window, budget.Hour, budget.Day, budget.Week, budget.Month),
		document.Parsed("timezone", "a time zone such as Europe/Berlin", &b.Zone, parseZone),
		document.Int("tokens", "how many tokens", 1, budget.Most, &b.Limit.Tokens),
		document.Field("money", func(n document.Node) {
			before := n.Report.Count()
			if readMoney(n, "an amount of money", &b.Limit.Micros); b.Limit.Micros == 0 && n.Report.Count() == before {
				n.Fail("found no money; expected at least \"0.000001\"")
			}
		}),
		document.Field("currency", func(n document.Node) { readCurrency(n, new(string)) }),
	)
	n.Describes(func(s *document.Schema) {
		s.AllOf = []*document.Schema{{AnyOf: []*document.Schema{{Required: []string{"tokens"}}, {Required: []string{"money"}}}}}
	})
	if !ok || !n.Requires("found a budget without %s; expected name, window, and tokens or money", "name", "window") {
		return b
	}
	if !n.Has("tokens") && !n.Has("money") {
		n.Fail("found a budget without a bound; expected tokens, or money, or both")
	}
	return b
}

// parseZone reads the name of a time zone.
func parseZone(name string) (*time.Location, error) {
	zone, err := time.LoadLocation(name)
	if err != nil || name == "" || name == "Local" {
		return nil, fmt.Errorf(
			"found the time zone %q; expected UTC, or a name of the time zone database of this machine, such as Europe/Berlin", name)
	}
	return zone, nil
}

// patternsField is a list of names or patterns that is not empty.
func patternsField(key, of string, into *[]string) document.FieldReader {
	return document.Field(key, func(n document.Node) {
		n.Texts(of, into)
		n.NotEmptyAs(fmt.Sprintf("found an empty list; expected at least one of %s, or no %s for all", of, key))
		if len(n.Content) > maxNames {
			n.Fail("found %d names; expected at most %d", len(n.Content), maxNames)
		}
		for i, p := range *into {
			if key == "projects" && p != "" && p != "*" && strings.Count(p, "/") != 1 {
				n.At(fmt.Sprintf("/%d", i)).Fail("found %q; expected workspace/project, or a pattern such as acme/*", p)
			}
		}
	})
}

func readMoney(n document.Node, of string, into *int64) {
	var text string
	n.Matching(of+" in quotes, such as \"12.50\"", `^(0|[1-9][0-9]{0,9})(\.[0-9]{1,6})?$`)
	if !n.Text(of+" in quotes, such as \"12.50\"", &text) {
		return
	}
	micros, err := budget.ParseMoney(text)
	if err != nil {
		n.Fail("%v", err)
		return
	}
	*into = micros
}

func readCurrency(n document.Node, into *string) {
	n.Matching("a currency", currencyCode.String())
	if n.Text("a currency", into) && !currencyCode.MatchString(*into) {
		n.Fail("found the currency %q; expected its three letters, such as EUR", *into)
	}
}

// readPrices reads the file of prices: what a million tokens of a model cost.
func readPrices(root document.Node, s *budget.Set) {
	ok := root.Object(
		document.Field("currency", func(n document.Node) { readCurrency(n, &s.Currency) }),
		document.Field("prices", func(n document.Node) {
			n.List("prices", func(i int, item document.Node) {
				if i == maxNames {
					item.Fail("found more than %d prices; expected fewer, with a prefix* for models of one price", maxNames)
				}
				p := readPrice(item)
				if slices.ContainsFunc(s.Prices, func(other budget.ModelPrice) bool { return other.Model == p.Model && p.Model != "" }) {
					item.At("/model").Fail("found a price of %q twice; expected one", p.Model)
				}
				s.Prices = append(s.Prices, p)
			})
		}),
	)
	if ok {
		root.Requires("found prices without a %s; expected one such as currency: EUR", "currency")
	}
}

// readPrice reads the price of a model. A price that is not stated is not cheaper than one that is: input from
// a cache costs as other input, and writing to a cache twice that.
func readPrice(n document.Node) budget.ModelPrice {
	p := budget.ModelPrice{}
	ok := n.Object(
		document.Text("model", "the name of a model, or a prefix*", &p.Model).Matching(`^[^*]+\*?$|^\*$`),
		document.Field("input", func(n document.Node) { readMoney(n, "the price of a million tokens", &p.Price.Input) }),
		document.Field("cached_input", func(n document.Node) { readMoney(n, "the price of a million tokens", &p.Price.CachedInput) }),
		document.Field("cache_write", func(n document.Node) { readMoney(n, "the price of a million tokens", &p.Price.CacheWrite) }),
		document.Field("output", func(n document.Node) { readMoney(n, "the price of a million tokens", &p.Price.Output) }),
	)
	if !ok || !n.Requires("found a price without %s; expected model, input and output", "model", "input", "output") {
		return p
	}
	if strings.Contains(strings.TrimSuffix(p.Model, "*"), "*") {
		n.At("/model").Fail("found %q; expected the name of a model, or a prefix before one * at the end", p.Model)
	}
	if !n.Has("cached_input") {
		p.Price.CachedInput = p.Price.Input
	}
	if !n.Has("cache_write") {
		p.Price.CacheWrite = min(2*p.Price.Input, budget.Most)
	}
	return p
}
