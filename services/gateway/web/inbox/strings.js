// SPDX-License-Identifier: Apache-2.0
// What the elements say, in English; the property `strings` says it otherwise.

export const STRINGS = {
  title: "Notifications", bell: "Notifications", bellUnread: "Notifications, {n} unread", close: "Close",
  all: "All", unread: "Unread", archived: "Archived", snoozed: "Snoozed", tabs: "Which notifications",
  readAll: "Mark all as read", read: "Mark as read", markUnread: "Mark as unread", archive: "Archive", unarchive: "Move to the inbox",
  snooze: "Snooze", unsnooze: "Back to the inbox", hour: "In an hour", tomorrow: "Tomorrow at 9:00", week: "On Monday at 9:00",
  until: "Until {time}", more: "Show more", loading: "Loading", empty: "Nothing here", failed: "This cannot be shown now.", retry: "Try again",
  actionFailed: "That did not work. Please try again.", arrived: "New notifications: {n}", done: "Done", isUnread: "unread",
  preferences: "What would you like to get?", category: "Category", choice: "{category}, {channel}", saved: "Saved",
  noRecord: "There is nothing to choose here.",
  marketing: "Offers and news", social: "What other people do", reminder: "Reminders", billing: "Invoices and payments",
  operational: "How the service runs", system: "Notices of the system", academic: "Courses and grades",
  email: "E-mail", sms: "Text message", whatsapp: "WhatsApp", push: "Push", inapp: "In the app", voice: "Phone call", webhook: "Chat",
};
