package agent

import (
	"fmt"
	"time"
)

const (
	defaultCreatesPerSecond = 20
	defaultCreateBurst      = 100
)

// pace is a token bucket for creates: a burst at once, and then a number per second.
type pace struct {
	perSecond float64 // 0 or less: no limit
	burst     float64
	tokens    float64 // below 0: the number of creates that wait
	at        time.Time
}

func newPace(perSecond float64, burst int) *pace {
	return &pace{perSecond: perSecond, burst: float64(burst), tokens: float64(burst)}
}

// reserve takes a token and returns how long the create must wait. If the wait is longer than `longest`, reserve takes no token and returns the reason.
func (p *pace) reserve(now time.Time, longest time.Duration) (wait time.Duration, refused string) {
	if p.perSecond <= 0 {
		return 0, ""
	}
	if !p.at.IsZero() {
		p.tokens = min(p.burst, p.tokens+now.Sub(p.at).Seconds()*p.perSecond)
	}
	p.at = now
	wait = time.Duration(max(0, 1-p.tokens) / p.perSecond * float64(time.Second))
	if wait > longest {
		return 0, fmt.Sprintf("pace: %g creates a second are allowed, and more are waiting than may start in time", p.perSecond)
	}
	p.tokens--
	return wait, ""
}

// giveBack takes the token of a create back that does not begin: the creates of the next session need not wait for it.
func (p *pace) giveBack() { p.tokens = min(p.burst, p.tokens+1) }

// waitForPace waits until the create may begin, or the session drains or ends. It returns the reason why the create may not start, or nil.
func (w work) waitForPace(name string) (refused any) {
	var wait time.Duration
	w.agent.locked(func() {
		var why string
		if refused = w.refusedCreate(name); refused != nil {
			return
		}
		if wait, why = w.agent.pace.reserve(time.Now(), w.agent.config.OperationTimeout); why != "" {
			refused = guard(why)
		}
	})
	if wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-w.over:
			w.agent.locked(w.agent.pace.giveBack)
		}
	}
	return refused
}
