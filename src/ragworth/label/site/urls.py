"""Every address of the site, with the roles that may open it."""

from __future__ import annotations

from django.urls import register_converter

from ragworth.label.site.middleware import EVERYONE, OWNERS, REVIEWERS, SIGNED_IN, RowId, route
from ragworth.label.site.views import account, adjudication, labelling, managing, overview, people

register_converter(RowId, "id")
urlpatterns = [
    route("", overview.home, "home", SIGNED_IN),
    route("login/", account.sign_in, "login", EVERYONE),
    route("logout/", account.sign_out, "logout", SIGNED_IN),
    route("start/<str:token>/", account.start, "start", EVERYONE),
    route("join/<str:token>/", account.join, "join", EVERYONE),
    # Labelling
    route("p/<slug:slug>/label/", labelling.label_page, "label", SIGNED_IN),
    route("p/<slug:slug>/label/<id:item>/", labelling.label_page, "relabel", SIGNED_IN),
    route("p/<slug:slug>/answer/", labelling.answer, "answer", SIGNED_IN),
    route("p/<slug:slug>/next/", labelling.next_card, "next", SIGNED_IN),
    route("p/<slug:slug>/hold/", labelling.hold_items, "hold", SIGNED_IN),
    route("p/<slug:slug>/undo/", labelling.take_back, "undo", SIGNED_IN),
    route("p/<slug:slug>/mine/", overview.own_answers, "mine", SIGNED_IN),
    # Reviewing
    route("p/<slug:slug>/agreement/", adjudication.agreement_page, "agreement", REVIEWERS),
    route("p/<slug:slug>/adjudicate/", adjudication.adjudicate_page, "adjudicate", REVIEWERS),
    route("p/<slug:slug>/adjudicate/next/", adjudication.next_dispute, "next-dispute", REVIEWERS),
    route("p/<slug:slug>/adjudicate/decide/", adjudication.decide, "decide", REVIEWERS),
    # Managing
    route("p/<slug:slug>/", managing.project_page, "project", OWNERS),
    route("p/<slug:slug>/items/", managing.item_list, "items", OWNERS),
    route("p/<slug:slug>/items/add/", managing.upload_items, "add-items", OWNERS),
    route("p/<slug:slug>/items/<id:item>/", managing.item_page, "item", OWNERS),
    route("p/<slug:slug>/open/", managing.set_open, "set-open", OWNERS),
    route("p/<slug:slug>/export/<str:format>/", managing.download, "export", OWNERS),
    route("people/", people.people_page, "people", OWNERS),
    route("people/invite/", people.invite, "invite", OWNERS),
    route("people/<id:person>/", people.change_person, "change-person", OWNERS),
    route("audit/", people.audit_page, "audit", OWNERS),
]
handler403 = "ragworth.label.site.views.overview.forbidden"
handler404 = "ragworth.label.site.views.overview.not_found"
handler500 = "ragworth.label.site.views.overview.failed"
