// SPDX-License-Identifier: Apache-2.0

// A durable subscriber of a tenant's statuses: it goes on where it stopped, however long it was away (up to the 30 days of STATUS).
//
//	NATS_URL=... NATS_USER=... NATS_PASSWORD=... TENANT=demo go run durable.go [COUNT]
//
// Prints a line "STATUS NOTIFICATION EVENT" for each; ends after COUNT. The user comes from `stentor subscriber create`.
package main

import (
	"errors"
	"fmt"
	"log"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

func setting(name, otherwise string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return otherwise
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func main() {
	count := -1 // for ever
	if len(os.Args) > 1 {
		count, _ = strconv.Atoi(os.Args[1])
	}
	user := setting("NATS_USER", "stentor-subscriber")
	durable := setting("CONSUMER", user+"-0") // a subscriber has the names USER and USER-0 to USER-7
	connection, err := nats.Connect(setting("NATS_URL", nats.DefaultURL), nats.UserInfo(user, os.Getenv("NATS_PASSWORD")))
	must(err)
	defer connection.Close()
	js, err := connection.JetStream(nats.Domain("stentor"))
	must(err)

	// Made once and there from then on: to say the same again changes nothing.
	filter := "ntf.status." + setting("TENANT", "demo") + ".>"
	_, err = js.AddConsumer("STATUS", &nats.ConsumerConfig{
		Name:          durable,
		Durable:       durable,
		FilterSubject: filter,
		AckPolicy:     nats.AckExplicitPolicy,
	})
	must(err)
	subscription, err := js.PullSubscribe(filter, durable, nats.Bind("STATUS", durable))
	must(err)
	for seen := 0; seen != count; {
		wanted := 100
		if count >= 0 && count-seen < wanted {
			wanted = count - seen
		}
		messages, err := subscription.Fetch(wanted, nats.MaxWait(5*time.Second))
		if errors.Is(err, nats.ErrTimeout) {
			continue
		}
		must(err)
		for _, message := range messages {
			status := strings.Split(message.Header.Get("ce-type"), ".")[2] // stentor.notification.<status>.v1
			// An event may come twice, with the same id: with a database, make the id a unique key next to what is written.
			fmt.Println(status, message.Header.Get("ce-subject"), message.Header.Get("ce-id"))
			must(message.AckSync()) // after the work: what is not acknowledged within 30 s comes again
			seen++
		}
	}
}
