"""The page's style sheet: what the theme file cannot say."""

from topox_core.figures.palette import Theme
from topox_core.figures.template import LANE_LEFT, LANE_RIGHT


def css(theme: Theme, large: bool) -> str:
    """Return the style sheet for a theme; ``large`` is the presentation size (18 px)."""
    side = 290 if large else 248
    return f"""<style>
html {{ font-size: {18 if large else 15}px; }}
[data-testid="stHeader"] {{ height: 0; min-height: 0; background: transparent; }}
/* A folded menu has its button in the header: there the page begins below it. */
.stApp:has([data-testid="stExpandSidebarButton"]) [data-testid="stHeader"] {{ height: 2.6rem; background: {theme.page}; }}
.stApp:has([data-testid="stExpandSidebarButton"]) [data-testid="stMainBlockContainer"] {{ padding-top: 3.2rem; }}
[data-testid="stMainBlockContainer"] {{ padding: 1.5rem 1.75rem 3rem; max-width: 1760px; }}
[data-testid="stMain"] {{ font-variant-numeric: tabular-nums; }}
section[data-testid="stSidebar"] {{ width: {side}px !important; min-width: {side}px !important;
  border-right: 1px solid {theme.grid}; }}
section[data-testid="stSidebar"][aria-expanded="false"] {{ width: 0 !important; min-width: 0 !important; }}
[data-testid="stSidebarHeader"] {{ height: 1.6rem; padding: .4rem .6rem 0; margin: 0; }}
[data-testid="stSidebarContent"] {{ padding: 0; }}
[data-testid="stSidebarUserContent"] {{ padding: 0 1.6rem 1.5rem 1.9rem !important; }}
[data-testid="stSidebarUserContent"] [data-testid="stVerticalBlock"] {{ gap: .55rem; }}
[data-testid="stSidebarUserContent"] hr {{ margin: .5rem 0 .35rem; }}
[data-testid="stSidebarUserContent"] [data-testid="stPageLink"] a {{ padding: .22rem .5rem; margin-left: -.5rem; }}
.stElementContainer:has(> .st-key-tab_id), .st-key-tab_id {{ position: absolute; height: 0; overflow: hidden; }}
.brand {{ font-weight: 650; font-size: 1rem; margin: 0; color: {theme.ink}; }} .brand b {{ color: {theme.primary}; font-weight: 650; }}
.st-key-job_box {{ border-left: 3px solid {theme.primary}; background: {theme.page}; padding: .4rem .7rem .35rem;
  margin-left: -.55rem; border-radius: 3px; gap: 0 !important; }}
.job {{ margin: 0; line-height: 1.35; font-size: .78rem; color: {theme.muted}; }}
.job b {{ display: block; font-size: .9rem; font-weight: 650; color: {theme.ink}; overflow-wrap: anywhere; }}
.st-key-job_box [data-testid="stPageLink"], .st-key-job_box a {{ margin: 0 !important; padding: 0 !important; min-height: 0; }}
.st-key-job_box a {{ background: none !important; }}
.st-key-job_box a p {{ font-weight: 400; font-size: .78rem; color: {theme.primary}; }}
.st-key-menu, .st-key-menu [data-testid="stVerticalBlock"] {{ gap: 0 !important; }}
.st-key-menu .stElementContainer, .st-key-menu .stPageLink, .st-key-menu a {{ height: 1.72rem; min-height: 0; margin-top: 0 !important;
  margin-bottom: 0 !important; }}
.st-key-menu [data-testid="stExpander"] details {{ border: 0; background: none; }}
.st-key-menu [data-testid="stExpander"] summary {{ padding: .3rem 0 .1rem; background: none; min-height: 1.7rem; }}
.st-key-menu [data-testid="stExpander"] summary p {{ font-weight: 600; font-size: .8rem; }}
.st-key-menu [data-testid="stExpanderDetails"] {{ padding: 0; border: 0; }}
/* The pages of a group begin where its name does, behind its arrow. */
.st-key-menu [data-testid="stExpanderDetails"] a {{ padding-left: 1.95rem !important; }}
[data-testid="stSlider"] input[type="range"] {{ width: 1px; }}
[data-testid="stSidebarUserContent"] [data-testid="stSlider"] {{ padding-bottom: .1rem; }}
[data-testid="stSidebarUserContent"] label [data-testid="stTooltipIcon"] {{ opacity: .45; }}
[data-testid="stSliderTickBarMin"], [data-testid="stSliderTickBarMax"], [data-testid="stSliderTickBar"] {{ display: none; }}
.side {{ font-weight: 650; font-size: 1rem; margin: 0; }}
.kicker {{ font-size: .8rem; color: {theme.muted}; margin: 0; line-height: 1.35; }}
.headline {{ font-size: 1.28rem !important; font-weight: 400 !important; line-height: 1.35 !important;
  margin: .1rem 0 0 !important;
  padding: 0 !important; text-wrap: balance; color: {theme.ink}; }}
.headline b {{ font-weight: 650; }}
/* One segmented control: links to the other views of an entry, the one in view as a word on a ground of its own. */
.st-key-views {{ width: fit-content; max-width: 100%; gap: 2px; padding: 2px; margin: .1rem 0 .15rem; border-radius: 8px;
  background: {theme.panel}; border: 1px solid {theme.line}; }}
.st-key-views > .stElementContainer {{ margin: 0 !important; }} /* else a second line overlaps the first */
.st-key-views :is(a, .here) {{ margin: 0 !important; padding: .2rem .7rem; min-height: 0; border-radius: 6px; background: none; }}
.st-key-views :is(a p, .here) {{ font-size: .88rem; line-height: 1.45; font-weight: 400; color: {theme.ink}; white-space: normal; }}
[data-testid="stMain"] a[aria-current="page"] {{ background: none; font-weight: inherit; }}
.st-key-views a:hover {{ background: {theme.grid}; }} .st-key-views a:focus-visible {{ outline: 2px solid {theme.primary}; }}
.st-key-views .here {{ font-weight: 650; background: {theme.page}; box-shadow: inset 0 -2px {theme.primary}; }}
.verdict {{ padding: .25rem 0 .2rem .7rem; border-left: 3px solid {theme.primary}; color: {theme.ink}; }}
.verdict p {{ font-size: .95rem; line-height: 1.45; margin: 0 0 .15rem; }}
.verdict table {{ border-collapse: collapse; margin: 0; font-size: .82rem; line-height: 1.3; }}
.verdict th, .verdict td {{ border: 0 !important; padding: .1rem .9rem .1rem 0 !important; text-align: right; font-weight: 400; }}
.verdict :is(th, td):first-child {{ text-align: left; }} .verdict thead th {{ color: {theme.muted}; }}
@media (max-width: 640px) {{ .verdict :is(th, td) {{ padding-right: .45rem !important; }} }}
/* Rows of clicks under the figures that they change. */
:is([class*="_speeds"], .st-key-real_delays) {{ gap: .25rem .5rem; }}
:is([class*="_speeds"], .st-key-real_delays) button {{ min-height: 1.75rem; padding: 0 .55rem; }}
:is([class*="_speeds"], .st-key-real_delays) button p {{ font-size: .82rem; }}
.chart {{ font-size: .95rem; font-weight: 600; margin: 0; line-height: 1.3; color: {theme.ink}; }}
.chart span {{ font-size: .8rem; font-weight: 400; color: {theme.muted}; }}
.chart span.under {{ display: block; margin-top: .1rem; }}
.chart .stopped {{ font: inherit; color: inherit; }}
.chart span b {{ color: {theme.ink}; font-weight: 600; }}
.st-key-see a {{ background: {theme.primary}; padding: .35rem .9rem; border-radius: 6px; }}
.st-key-see a:hover {{ filter: brightness(1.08); background: {theme.primary}; }}
.st-key-see a p, .st-key-see a span {{ color: {theme.page} !important; }}
[data-testid="stPopoverBody"] [data-testid="stVerticalBlock"] {{ gap: .1rem; }}
[data-testid="stPopoverBody"] [data-testid="stDownloadButton"] button {{ justify-content: flex-start; padding: .3rem .5rem;
  min-height: 0; }}
[data-testid="stPopoverBody"] [data-testid="stDownloadButton"] button * {{ justify-content: flex-start; }}
[data-testid="stPopoverBody"] [data-testid="stDownloadButton"] button:hover {{ background: {theme.panel}; }}
.term {{ font: inherit; color: inherit; letter-spacing: inherit; background: none; border: 0; padding: 0; margin: 0;
  border-bottom: 1px dotted {theme.muted}; border-radius: 0; cursor: help; text-align: inherit; line-height: inherit; }}
.stopped {{ white-space: nowrap; }} .stopped .term {{ white-space: normal; }}
.term:hover {{ border-bottom-style: solid; }}
/* Where nearly every word is a term the lines would be all that is seen: they come with pointer or focus. */
.kicker .term {{ border-bottom-color: transparent; }}
.kicker:hover .term, .kicker:focus-within .term {{ border-bottom-color: {theme.muted}; }}
.term:focus-visible, .ask:focus-visible {{ outline: 2px solid {theme.primary}; outline-offset: 2px; border-radius: 2px; }}
.term-box {{ position: fixed; inset: auto; width: 250px; box-sizing: border-box; margin: 0; padding: .5rem .65rem; border-radius: 6px;
  border: 1px solid {theme.line if theme.name == "dark" else theme.ink}; font-size: .8rem; line-height: 1.4;
  background: {theme.panel if theme.name == "dark" else theme.ink}; color: {theme.ink if theme.name == "dark" else theme.page}; }}
[data-testid="stElementContainer"]:has(> [data-testid="stHtml"] > .terms) {{ display: none; }}
.lesson, .lesson p {{ font-size: 1rem; line-height: 1.5; margin: 0 0 .5rem; color: {theme.ink}; }}
.step {{ font-size: .9rem; margin: 0; color: {theme.muted}; white-space: nowrap; }}
.live {{ font-size: 1.05rem; line-height: 1.45; margin: .2rem 0 0; min-height: 3.1rem; color: {theme.ink}; }}
.live b, .lesson b {{ font-weight: 650; }}
.lab-text {{ max-width: 62rem; margin-top: .4rem; }}
.lab-strip {{ display: flex; flex-wrap: wrap; gap: .25rem .5rem; list-style: none;
  margin: 0 0 .3rem !important; padding: 0 !important; }}
.lab-strip li {{ display: flex; align-items: center; gap: .35rem; margin: 0; padding: 0 .35rem 0 0; font-size: .8rem;
  color: {theme.muted}; }}
.lab-strip i {{ display: inline-grid; place-items: center; width: 1.45rem; height: 1.45rem; border-radius: 50%; font-style: normal;
  font-size: .78rem; border: 1px solid {theme.muted}; color: {theme.muted}; }}
.lab-strip .here i {{ background: {theme.primary}; border-color: {theme.primary}; color: {theme.page}; font-weight: 650; }}
.lab-strip .here span {{ color: {theme.ink}; font-weight: 650; }}
.lab-strip .done i, .lab-strip .locked i {{ border-color: {theme.good}; color: {theme.good}; }}
.lab-strip .waits i {{ border-style: dashed; }}
.unseen {{ position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }}
.lab-question {{ font-size: 1rem; line-height: 1.45; margin: 0; color: {theme.ink}; }}
.lab-said {{ font-size: .9rem; margin: 0; color: {theme.ink}; }}
.lab-truth {{ font-size: 1.05rem; margin: 0; color: {theme.ink}; }}
.lab-given {{ overflow-x: auto; }} .lab-given table {{ border-collapse: collapse; font-size: .88rem; color: {theme.ink}; margin: 0; }}
.lab-given caption {{ text-align: left; font-weight: 600; font-size: .95rem; padding: 0 0 .25rem; }}
.lab-given th, .lab-given td {{ border: 0 !important; border-bottom: 1px solid {theme.grid} !important; text-align: left;
  padding: .22rem .9rem .22rem 0 !important; font-weight: 400; }}
.lab-given thead th {{ color: {theme.muted}; }} .lab-given tbody th {{ font-weight: 650; }}
[class*="st-key-lab_question_"], [class*="st-key-lab_truth_"] {{ gap: .5rem; padding: .75rem .95rem .85rem; }}
[class*="st-key-lab_drag_"], .st-key-lab_arriving {{ position: absolute; width: 0; height: 0; overflow: hidden; }}
.st-key-lab_hand .nsewdrag {{ cursor: grab; }}
/* Earlier and later do what the field's own steps would. */
[class*="st-key-lab_"] [data-testid="stNumberInputStepDown"], [class*="st-key-lab_"] [data-testid="stNumberInputStepUp"] {{
  display: none; }}
[class*="st-key-lab_"] [data-testid="stNumberInput"] label p {{ white-space: nowrap; }}
.glossary {{ columns: 2; column-gap: 2.5rem; margin: 0 !important; padding: 0 !important; }}
.glossary div {{ break-inside: avoid; padding-bottom: .75rem; }}
.glossary.asked {{ columns: 1; }} .glossary.asked div {{ border-left: 3px solid {theme.primary}; padding: 0 0 0 .75rem; }}
.glossary dt {{ font-weight: 650; font-size: .95rem; color: {theme.ink}; }}
.glossary dd {{ margin: 0 !important; padding: 0 !important; font-size: .9rem; line-height: 1.45; color: {theme.ink}; }}
.kicker a {{ color: inherit; }}
.glossary .also {{ display: block; font-size: .8rem; color: {theme.muted}; }} .glossary .also a {{ color: inherit; }}
@media (max-width: 640px) {{ .glossary {{ columns: 1; }} }}
.kicker .ask {{ display: inline-block; width: 1.25em; text-align: center; border: 1px solid {theme.line}; border-radius: 50%;
  line-height: 1.2; font-size: .95em; color: {theme.muted}; text-decoration: none; }}
.kicker .ask:hover {{ border-color: {theme.primary}; color: {theme.primary}; }}
.by-itself {{ font-size: .84rem; margin: 0; color: {theme.ink}; }}
.verdicts {{ display: flex; gap: 3px; margin: .2rem 0 .3rem; }} .verdicts .part {{ display: block; min-width: 5.6rem; }}
.verdicts b {{ display: block; height: .45rem; border-radius: 3px; background: currentColor; }}
.verdicts .part > span {{ display: block; font-size: .85rem; line-height: 1.3; color: {theme.ink}; }}
.verdicts .good, .signs .good {{ color: {theme.good}; }} .verdicts .even, .signs .even {{ color: {theme.primary}; }}
.verdicts .bad, .signs .bad {{ color: {theme.bad}; }} .verdicts .none, .signs .none {{ color: {theme.muted}; }}
.st-key-wall {{ display: grid; grid-template-columns: repeat(auto-fill, minmax(14.5rem, 1fr)); }}
.st-key-wall > div {{ width: auto !important; }}
[class*="st-key-wall_"] {{ position: relative; padding: .55rem .8rem .45rem !important; min-height: 8.6rem; }}
[class*="st-key-wall_"] button {{ padding: 0; min-height: 1.5rem; justify-content: flex-start; text-align: left; }}
[class*="st-key-wall_"] button p {{ font-weight: 650; font-size: .95rem; color: {theme.ink}; }}
[class*="st-key-wall_"] button::after {{ content: ""; position: absolute; inset: 0; }}
[class*="st-key-wall_"] [data-testid="stElementContainer"], [class*="st-key-wall_"] [data-testid="stButton"] {{ position: static; }}
[class*="st-key-wall_"]:hover {{ border-color: {theme.primary} !important; }}
[class*="st-key-wall_"] .source {{ font-size: .8rem; line-height: 1.3; color: {theme.muted}; margin: 0 0 .25rem; display: -webkit-box;
  -webkit-line-clamp: 2; -webkit-box-orient: vertical; overflow: hidden; }}
[class*="st-key-wall_"] img {{ display: block; width: 100%; height: 3.4rem; }}
[class*="st-key-wall_"] .plotted {{ font-size: .74rem; line-height: 1.25; color: {theme.muted}; margin: .1rem 0 0; }}
.signs {{ display: flex; flex-wrap: wrap; gap: 0 .8rem; font-size: .85rem; font-weight: 600; margin: .2rem 0 0; }}
.st-key-claims {{ gap: .1rem; }} .st-key-claims [data-testid="stHorizontalBlock"] {{ border-bottom: 1px solid {theme.grid}; }}
.st-key-claims button {{ justify-content: flex-start; text-align: left; padding: .15rem 0; min-height: 1.8rem; }}
.st-key-claims button p {{ font-size: .9rem; color: {theme.primary}; white-space: normal; }}
.claim {{ font-size: .9rem; margin: 0; line-height: 1.35; color: {theme.ink}; }} .claim b {{ font-weight: 650; }}
.quiet.other {{ padding-bottom: .25rem; }}
@media (max-width: 640px) {{
  /* The claim in a line of its own, its three facts below it. */
  .st-key-claims [data-testid="stHorizontalBlock"] {{ flex-wrap: wrap; gap: 0 .6rem; padding-bottom: .25rem; }}
  .st-key-claims [data-testid="stColumn"] {{ min-width: 24% !important; flex: 1 1 24% !important; }}
  .st-key-claims [data-testid="stColumn"]:first-child {{ min-width: 100% !important; }} }}
.note {{ font-size: .82rem; line-height: 1.4; margin: 0; padding: .4rem .6rem; border-left: 3px solid {theme.primary};
  background: {theme.panel}; color: {theme.ink}; }}
.chips {{ margin: .35rem 0 0; line-height: 2; font-size: .82rem; color: {theme.muted}; }}
.chips > span {{ border: 1px solid {theme.line}; border-radius: 6px; padding: .2rem .5rem;
  margin-right: .25rem; white-space: nowrap; }}
.chips b {{ font-weight: 400; color: {theme.ink}; }} .chips .term {{ line-height: 1.2; }}
.differs, .fits {{ border-collapse: collapse; width: 100%; font-size: .85rem; color: {theme.ink}; margin: 0 !important; }}
/* Of a table that is as narrow as the window the first column alone wraps. */
.fits :is(td, th) {{ border: 0 !important; border-bottom: 1px solid {theme.grid} !important; padding: .3rem .25rem !important;
  text-align: right; font-weight: 400; white-space: nowrap; }}
.fits :is(td, th):first-child {{ text-align: left; white-space: normal; }} .fits thead th, .fits small {{ color: {theme.muted}; }}
.fits small {{ display: block; font-size: .78rem; }}
.differs td, .differs th {{ border: 0 !important; border-bottom: 1px solid {theme.grid} !important; padding: .3rem .25rem !important;
  text-align: right; font-weight: 400; overflow-wrap: anywhere; }}
.differs thead th {{ color: {theme.muted}; }} .differs [scope="row"] {{ text-align: left; }}
.differs [scope="colgroup"] {{ text-align: left; font-weight: 650; padding-top: .6rem !important; }}
.quiet {{ font-size: .8rem; color: {theme.muted}; margin: 0; line-height: 1.4; }}
/* Whole pixels: for a fraction, which is measured in two ways, a chart would be drawn twice. */
[data-testid="stPlotlyChart"], .stElementContainer:has(> [data-testid="stFullScreenFrame"]) {{ max-width: round(down, 100%, 1px); }}
[data-testid="stMetric"] {{ border-left: 3px solid {theme.line}; padding: 0 0 0 .75rem; }}
[data-testid="stMetricLabel"] p {{ font-size: .82rem; }}
/* A key figure breaks between words, never within one: where five do not fit a row, there are more rows. */
[data-testid="stMetric"] .stMarkdownEllipsis, [data-testid="stMetric"] .stMarkdownEllipsis *, [data-testid="stMetric"] p {{
  white-space: normal; overflow: visible; overflow-wrap: normal; word-break: normal; }}
[data-testid="stHorizontalBlock"]:has(> [data-testid="stColumn"] > [data-testid="stVerticalBlock"] > * > [data-testid="stMetric"]) {{
  flex-wrap: wrap; row-gap: .7rem; }}
[data-testid="stHorizontalBlock"] > [data-testid="stColumn"]:has(> [data-testid="stVerticalBlock"] > * > [data-testid="stMetric"]) {{
  min-width: 8.4rem !important; flex: 1 1 8.4rem !important; }}
/* The camera of a figure is pressed by its buttons. */
.modebar-container {{ visibility: hidden; }}
.save {{ font: inherit; font-size: .87rem; color: {theme.ink}; background: none; border: 0;
  padding: .2rem .5rem; min-height: 24px; margin: 0; cursor: pointer; }}
.save:hover {{ color: {theme.primary}; }}
.save:focus-visible {{ outline: 2px solid {theme.primary}; border-radius: 3px; }}
/* The page in view has a tint, a link with the focus a ring. */
section[data-testid="stSidebar"] a:focus-visible {{ outline: 2px solid {theme.primary} !important; outline-offset: -2px; }}
section[data-testid="stSidebar"] a:focus-visible:not([aria-current="page"]) {{ background: none; }}
[data-testid="stMetricValue"] {{ line-height: 1.35; padding-bottom: 0; }}
[data-testid="stMetricDelta"] {{ background: none !important; padding: 0 !important; font-size: .8rem; }}
[data-testid="stMetricDelta"] > div {{ font-size: .8rem; }}
.st-key-w {{ padding: 0 {LANE_RIGHT - 5}px 0 {LANE_LEFT - 6}px; margin-bottom: -1.15rem; }}
.st-key-w [data-testid="stSlider"] {{ padding-top: .2rem; }}
.st-key-slot {{ padding: 0 {LANE_RIGHT - 5}px 0 {LANE_LEFT - 6}px; margin-bottom: -1.15rem; }}
.st-key-slot_strip {{ gap: .35rem; }}
.st-key-timeline {{ gap: .35rem; }}
.st-key-gantt {{ margin-top: -.55rem; }}
.st-key-certificate {{ gap: .4rem; padding: .95rem 1rem 1rem; }}
.st-key-take_away {{ gap: .5rem; }} .st-key-take_away button {{ padding-left: .6rem; padding-right: .6rem; }}
.st-key-proof {{ gap: .4rem; padding: .7rem .9rem .6rem; }}
.seal {{ font-size: 1.05rem; font-weight: 650; margin: 0 0 .35rem; line-height: 1.3; }}
.good {{ color: {theme.good}; }} .bad {{ color: {theme.bad}; }}
.facts {{ display: grid; grid-template-columns: auto auto; gap: .42rem .6rem; font-size: .87rem; margin: 0; line-height: 1.3; }}
.facts, .facts *, .checks, .checks li {{ padding: 0 !important; margin-left: 0 !important; }}
.facts dt {{ font-weight: 400; color: {theme.muted}; }} .facts dd {{ margin: 0; text-align: right; color: {theme.ink}; }}
.facts dd b {{ font-weight: 650; }}
.facts .wide {{ grid-column: 1 / -1; text-align: left; margin-top: .3rem; }}
.checks {{ display: grid; grid-template-columns: 1fr 1fr; gap: .2rem .6rem; font-size: .82rem; margin: .1rem 0 0; padding: 0;
  list-style: none; }}
.checks li {{ margin: 0; padding: 0; line-height: 1.3; color: {theme.ink}; }}
.checks span {{ color: {theme.muted}; white-space: nowrap; }}
[class*="st-key-card_"] {{ position: relative; padding: .8rem .95rem .85rem; gap: .35rem; transition: border-color .12s; }}
[class*="st-key-card_"]:hover {{ border-color: {theme.primary}; }}
/* The title's link spreads over its whole card, so nothing between the two may be a frame of reference. */
[class*="st-key-card_"] :is(.stElementContainer, .stPageLink, .stPageLink div, .stButton, .stButton div, a, button) {{
    position: static !important; }}
[class*="st-key-card_"] :is(a, button) {{ padding: 0 !important; margin: 0; min-height: 0; background: none !important; }}
[class*="st-key-card_"] :is(a, button) p {{ font-weight: 600; font-size: .95rem; white-space: normal; line-height: 1.3; }}
[class*="st-key-card_"] :is(a, button)::after {{ content: ""; position: absolute; inset: 0; }}
[class*="st-key-card_"]:focus-within {{ outline: 2px solid {theme.primary}; outline-offset: 1px; }}
.card {{ font-size: .84rem; line-height: 1.4; margin: 0; color: {theme.ink}; }}
.card span {{ display: block; color: {theme.muted}; font-size: .78rem; margin-top: .2rem; }}
[class*="st-key-ready_"] > :last-child {{ margin-top: auto; }}
.picture {{ display: block; width: 100%; max-width: 330px; height: auto; margin: .3rem 0 .35rem; }}
.five {{ display: grid; grid-template-columns: auto 1fr; gap: .5rem .9rem; font-size: .88rem; margin: .25rem 0 .4rem !important;
  padding: 0 !important; line-height: 1.35; }}
.five dt {{ font-weight: 650; color: {theme.ink}; margin: 0; }} .five dd {{ margin: 0 !important; color: {theme.ink}; }}
.st-key-tour_contents {{ gap: .1rem 1.2rem; }} .st-key-tour_contents button {{ padding: 0; min-height: 1.7rem; }}
.st-key-tour a {{ background: {theme.primary}; justify-content: center; padding: .5rem .9rem; border-radius: 6px; }}
.st-key-tour a:hover {{ filter: brightness(1.08); background: {theme.primary}; }}
.st-key-tour a p, .st-key-tour a span {{ color: {theme.page} !important; }}
.st-key-open_job {{ justify-content: space-between; margin-top: .4rem; }}
.question {{ font-size: .87rem; margin: 0; line-height: 1.35; color: {theme.ink}; }}
[class*="st-key-question_"] {{ gap: .1rem; }}
[class*="st-key-question_"] a {{ padding: 0; min-height: 0; background: none !important; }}
[class*="st-key-question_"] a p {{ color: {theme.primary}; font-size: .88rem; }}
[data-testid="stExpander"] summary {{ font-size: .82rem; padding-top: 0; padding-bottom: 0; min-height: 1.6rem; }}
[data-testid="stExpander"] summary {{ opacity: 1 !important; color: {theme.muted}; }}
[data-testid="stExpander"] summary p {{ color: inherit; }}
[data-testid="stExpander"] summary:hover {{ color: {theme.primary}; }}
[data-testid="stCaptionContainer"] {{ opacity: 1 !important; color: {theme.muted} !important; }}
[data-testid="stCaptionContainer"] p {{ color: inherit; }}
button[aria-label="Clear value"] {{ min-width: 24px; }}
button[kind^="primary"]:not(:disabled), button[kind^="primary"]:not(:disabled) * {{ color: {theme.page}; }}
/* Chosen things stand on the primary colour, which is bright in the dark theme. */
[data-testid="stMultiSelect"] span[title] {{ color: {theme.page} !important; }}
/* What is chosen stands on a tint of its own colour, and would be too faint there. */
[data-testid="stButtonGroup"] button[data-selected] p {{ color: color-mix(in srgb, {theme.primary} 65%, {theme.ink}); }}
[data-testid="stMain"] [class*="st-key-table_"] {{ margin-top: -.55rem; }}
/* The server does not know the width: numbers that have room in bars on a laptop go where there is none. */
.st-key-iterations, .st-key-gantt, .st-key-lanes_gantt, .st-key-strip, .st-key-tornado, .st-key-yearly, .st-key-by_size,
  .st-key-placements, .st-key-clock, .st-key-delay, .st-key-delay_live, .st-key-breakdown, .st-key-rivals, .st-key-changes,
  .st-key-tornado_few, .st-key-over_time, .st-key-study_map_dense, .st-key-study_front {{
  container-type: inline-size; }}
@container (max-width: 440px) {{
  .st-key-iterations .textpoint, .st-key-gantt .bartext, .st-key-lanes_gantt .bartext, .st-key-strip .bartext,
  .st-key-tornado_few .bartext, .st-key-study_front .annotation:not([data-index="0"]), .st-key-study_map_dense .annotation-text,
  .st-key-study_map_dense .xtick:nth-child(even) text,
  .st-key-clock :is(.bartext, .textpoint) tspan,
  .st-key-tornado .annotation-text, .st-key-yearly .annotation-text, .st-key-by_size .xtick:nth-child(even) text,
  .st-key-breakdown .xtick:nth-child(even) text, .st-key-changes .xtick:nth-child(even) text,
  .st-key-over_time .xtick:nth-child(even) text, .st-key-placements .xtick:nth-child(even) text,
  [class*="st-key-delay"] .annotation:not([data-index="0"], [data-index="1"], [data-index="2"]) {{ display: none; }} }}
/* Without a pointer the tools of a table are always in view: they have a line of their own. */
@media (hover: none) {{ .stElementContainer:has(> [data-testid="stFullScreenFrame"] .stDataFrame) {{ padding-top: 2.1rem; }} }}
@media screen and (max-width: 1000px) {{
  /* Side by side, figures would have half a narrow window each, less than 350 px beside the menu. */
  [data-testid="stHorizontalBlock"]:has(> [data-testid="stColumn"] :is(.stPlotlyChart, .stDataFrame, .st-key-certificate)) {{
    flex-wrap: wrap;
    > [data-testid="stColumn"] {{ min-width: 100%; }} }}
}}
@media (max-width: 640px) {{ .chips > span, [data-testid="stMain"] [data-testid="stPageLink"] a * {{ white-space: normal; }}
  [data-testid="stMetricValue"] {{ font-size: 1.15rem; }} }}
@media print {{
  /* The page alone, as wide as the paper. */
  html, body, .stApp, [data-testid="stAppViewContainer"], [data-testid="stMain"], [data-testid="stMainBlockContainer"] {{
    display: block !important; position: static !important; width: auto !important; height: auto !important;
    max-width: none !important; overflow: visible !important; }}
  [data-testid="stMainBlockContainer"] {{ padding: 0 !important; }}
  [data-testid="stHeader"], [data-testid="stSidebar"], [data-testid="stExpandSidebarButton"], [data-testid="stToolbar"],
  [data-testid="stStatusWidget"], [data-testid="stPageLink"], .modebar-container {{ display: none !important; }}
  [data-testid="stPlotlyChart"] {{ break-inside: avoid; }}
  .headline {{ font-size: 1.15rem !important; }} .buying-details {{ line-height: 1.2; row-gap: .1rem !important; }}
}}
</style>"""
