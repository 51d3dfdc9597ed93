(* The exact delta of a sampled crowd.

   One cell of a table: n records, each kept with probability b; the number
   that was kept is published if it is at least k, and nothing otherwise.
   E stands for e^epsilon. The tables differ by a records in this cell; a = 1
   is the theorem of docs/proofs.md, and larger a serve Groups.v.

   Indices are chosen so that nothing is subtracted: the threshold is k = i + 1,
   and with a = 1 the larger table has n + 1 records, the smaller one n. *)
From mathcomp Require Import all_ssreflect all_algebra ring.
From Incrowd Require Import Binomial.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import GRing.Theory Num.Theory Order.Theory.
Local Open Scope ring_scope.

Section Crowd.
Variable R : realFieldType.
Implicit Types (b E d M : R) (i j k n m a J : nat) (S : pred nat).

(* What is seen of a cell with j sampled records; 0 means nothing. *)
Definition published k j : nat := if (k <= j)%N then j else 0%N.

(* The probability that what is seen of a cell of n records lies in S. *)
Definition law b k n S : R := mean b n (fun j => (S (published k j))%:R).

(* P[X_{n+a} >= J] - E P[X_n >= J] and P[X_n < J] - E P[X_{n+a} < J]. *)
Definition gain b E a J n : R := tail b J (n + a) - E * tail b J n.
Definition loss b E a J n : R := (1 - tail b J n) - E * (1 - tail b J (n + a)).

(* (epsilon, delta)-differential privacy of one cell, in both directions. *)
Definition private b E k d : Prop := forall n S,
  law b k n.+1 S <= E * law b k n S + d /\ law b k n S <= E * law b k n.+1 S + d.

Definition smallest b E k d : Prop :=
  private b E k d /\ forall d', private b E k d' -> d <= d'.

(* The first n at which the a-step ratio of the masses at i is at most E. *)
Definition worst b E a i n : bool :=
  [&& (i <= n)%N, mass b i (n + a) <= E * mass b i n
    & [forall m : 'I_n, (i <= m)%N ==> (E * mass b i m < mass b i (m + a))]].

(* n + 1 = max(1, ceiling(i / g)), said without a ceiling. *)
Definition least (g : R) i n : bool :=
  (i%:R <= g * n.+1%:R) && [forall m : 'I_n, g * m.+1%:R < i%:R].

Definition gamma b E : R := 1 - (1 - b) / E.

(* ---- The general bound: a records more, any E > 0. ---- *)

(* Where weights change sign once, from minus to plus, an upper end is the best set. *)
Lemma upper_end (w : nat -> R) (s : nat -> bool) c k :
    (forall i j, (i <= j)%N -> 0 < w i -> 0 <= w j) ->
  exists2 J, (k <= J <= k + c)%N &
    \sum_(k <= j < k + c) w j * (s j)%:R <= \sum_(J <= j < k + c) w j.
Proof.
move=> cross; elim: c k => [|c IH] k.
  by exists k; rewrite ?addn0 ?leqnn // !big_geq ?addn0.
case: (ltP 0 (w k)) => [wk_gt0 | wk_le0].
  exists k; first by rewrite leqnn leq_addr.
  rewrite !big_nat; apply: ler_sum => j /andP [le_kj _].
  have wj_ge0 := cross _ _ le_kj wk_gt0.
  by case: (s j); rewrite ?mulr1 ?mulr0.
have [J /andP [le_kJ le_Jc] bound] := IH k.+1; rewrite addSnnS in le_Jc bound.
exists J; first by rewrite (ltnW le_kJ).
rewrite big_ltn; last by rewrite -addSnnS ltnS leq_addr.
apply: le_trans bound; rewrite ger_addr.
by case: (s k); rewrite ?mulr1 ?mulr0.
Qed.

Lemma mean_wide b n phi c : mean b n phi = \sum_(0 <= j < n.+1 + c) mass b j n * phi j.
Proof.
elim: c => [|c IH]; first by rewrite addn0 /mean big_mkord.
by rewrite addnS big_nat_recr //= -IH mass_small ?mul0r ?addr0 // leq_addr.
Qed.

Lemma tail_wide b J n N : (n < N)%N -> (J <= N)%N -> tail b J n = \sum_(J <= j < N) mass b j n.
Proof.
move=> lt_nN le_JN; rewrite /tail (mean_wide b n _ (N - n.+1)) subnKC //.
rewrite (big_cat_nat _ _ _ (leq0n J) le_JN) /= big_nat big1 => [|j /andP [_ lt_jJ]].
  by rewrite add0r [LHS]big_nat [RHS]big_nat; apply: eq_bigr => j /andP [-> _]; rewrite mulr1.
by rewrite leqNgt lt_jJ mulr0.
Qed.

Section Rate.
Variable b : R.
Hypotheses (b_gt0 : 0 < b) (b_lt1 : b < 1).

Lemma law_ge0 k n S : 0 <= law b k n S.
Proof. by apply: mean_ge0 => // j; rewrite ler0n. Qed.

Lemma law_setC k n S : law b k n (predC S) = 1 - law b k n S.
Proof.
rewrite -[X in X - _](mean_const b n 1) -meanB; apply: mean_ext => j /=.
by case: (S _); rewrite ?subrr ?subr0.
Qed.

Lemma law_shown k n : (0 < k)%N -> law b k n (fun j => k <= j)%N = tail b k n.
Proof.
move=> k_gt0; apply: mean_ext => j; rewrite /published.
by case: (leqP k j) => [-> // | _]; rewrite leqNgt k_gt0.
Qed.

(* One trial more, conditioned on its outcome. *)
Lemma gainSS E a J n : gain b E a J.+1 n.+1 = b * gain b E a J n + (1 - b) * gain b E a J.+1 n.
Proof. by rewrite /gain addSn !tailSS; ring. Qed.

Lemma gain_step E a i n :
  gain b E a i.+1 n.+1 = gain b E a i.+1 n + b * (mass b i (n + a) - E * mass b i n).
Proof. by rewrite /gain addSn !tail_step; ring. Qed.

(* Raising the threshold never helps: H(J+1) <= H(J). *)
Lemma gain_threshold E a k M : (0 < k)%N ->
  (forall n, gain b E a k n <= M) -> forall J n, (k <= J)%N -> gain b E a J n <= M.
Proof.
move=> k_gt0 le_M J n /subnKC <-; move: (J - k)%N => d {J}.
elim: d n => [|d IH] n; first by rewrite addn0.
have kd_gt0 : (0 < k + d)%N by rewrite addn_gt0 k_gt0.
rewrite addnS; elim: n => [|n IHn].
  apply: le_trans (IH 0%N); rewrite /gain.
  by case: (k + d)%N kd_gt0 => // J _; rewrite !tail_zero !mulr0 !subr0 add0n tail_anti.
rewrite gainSS.
have -> : M = b * M + (1 - b) * M by ring.
by apply: ler_add; apply: ler_wpmul2l; rewrite ?subr_ge0 ?IH // ltW.
Qed.

Lemma single_crossing E a n i j : 0 <= E -> (i <= j)%N ->
  0 < mass b i (n + a) - E * mass b i n -> 0 <= mass b j (n + a) - E * mass b j n.
Proof.
move=> E_ge0 le_ij; rewrite subr_gt0 subr_ge0 => /ltW up.
case: (leqP j n) => [le_jn | lt_nj]; last by rewrite (mass_small b lt_nj) mulr0 mass_ge0.
have mi_gt0 : 0 < mass b i n by rewrite mass_gt0 // (leq_trans le_ij).
rewrite -(ler_pmul2r mi_gt0); apply: le_trans (mass_ratio_rises b_gt0 b_lt1 a n le_ij).
by rewrite mulrAC ler_wpmul2r ?mass_ge0.
Qed.

(* The bound: whatever bounds the gains at threshold k bounds every set of outcomes. *)
Lemma law_core E a k M : 0 <= E -> (0 < k)%N ->
    (forall n, gain b E a k n <= M) -> 0 <= M -> 1 - E <= M ->
  forall n S, law b k (n + a) S <= E * law b k n S + M.
Proof.
move=> E_ge0 k_gt0 le_M M_ge0 le_EM n S; rewrite addrC -ler_subl_addr.
pose w j := mass b j (n + a) - E * mass b j n.
pose N := (k + (n + a).+1)%N.
have cross i j : (i <= j)%N -> 0 < w i -> 0 <= w j by apply: single_crossing.
have le_kN : (k <= N)%N by rewrite leq_addr.
have lt_naN : (n + a < N)%N by rewrite leq_addl.
have lt_nN : (n < N)%N by rewrite (leq_ltn_trans _ lt_naN) ?leq_addr.
have sum_w J : (J <= N)%N -> \sum_(J <= j < N) w j = gain b E a J n.
  by move=> le_JN; rewrite /gain !(@tail_wide _ J _ N) // sumrB mulr_sumr.
have -> : law b k (n + a) S - E * law b k n S = \sum_(0 <= j < N) w j * (S (published k j))%:R.
  rewrite /law (mean_wide b (n + a) _ (N - (n + a).+1)) (mean_wide b n _ (N - n.+1)) !subnKC //.
  by rewrite mulr_sumr -sumrB; apply: eq_bigr => j _; rewrite /w; ring.
rewrite (big_cat_nat _ _ _ (leq0n k) le_kN) /=.
have -> : \sum_(0 <= j < k) w j * (S (published k j))%:R = (\sum_(0 <= j < k) w j) * (S 0%N)%:R.
  rewrite mulr_suml big_nat [RHS]big_nat; apply: eq_bigr => j /andP [_ lt_jk].
  by rewrite /published leqNgt lt_jk.
have -> : \sum_(k <= j < N) w j * (S (published k j))%:R = \sum_(k <= j < N) w j * (S j)%:R.
  rewrite big_nat [RHS]big_nat; apply: eq_bigr => j /andP [le_kj _].
  by rewrite /published le_kj.
case: (boolP [exists i : 'I_k, 0 < w i]) => [/existsP [i wi_gt0] | /existsPn none].
  have le_top : \sum_(k <= j < N) w j * (S j)%:R <= \sum_(k <= j < N) w j.
    rewrite !big_nat; apply: ler_sum => j /andP [le_kj _].
    have wj_ge0 := cross _ _ (leq_trans (ltnW (ltn_ord i)) le_kj) wi_gt0.
    by case: (S j); rewrite ?mulr1 ?mulr0.
  case: (S 0%N); rewrite ?mulr1 ?mulr0 ?add0r.
    apply: le_trans le_EM; apply: (le_trans (ler_add (lexx _) le_top)).
    by rewrite -(big_cat_nat _ _ _ (leq0n k) le_kN) sum_w // /gain !tail0 mulr1.
  by apply: (le_trans le_top); rewrite sum_w.
have low : (\sum_(0 <= j < k) w j) * (S 0%N)%:R <= 0.
  apply: mulr_le0_ge0; last by rewrite ler0n.
  rewrite big_mkord -oppr_ge0 -sumrN; apply: sumr_ge0 => i _.
  by rewrite oppr_ge0 leNgt none.
have [J /andP [le_kJ le_JN] bound] := upper_end (fun j => S j) (n + a).+1 k cross.
rewrite -[M]add0r; apply: (ler_add low); apply: (le_trans bound).
by rewrite sum_w // (gain_threshold k_gt0 le_M).
Qed.

Lemma below_worst E a i n m : worst b E a i n -> (m < n)%N ->
  0 <= mass b i (m + a) - E * mass b i m.
Proof.
case/and3P=> _ _ /forallP first lt_mn; rewrite subr_ge0.
case: (leqP i m) => [le_im | lt_mi]; last by rewrite (mass_small b lt_mi) mulr0 mass_ge0.
by have /implyP/(_ le_im)/ltW := first (Ordinal lt_mn).
Qed.

Lemma above_worst E a i n m : 0 <= E -> worst b E a i n -> (n <= m)%N ->
  mass b i (m + a) - E * mass b i m <= 0.
Proof.
move=> E_ge0 /and3P [le_in at_n _]; rewrite subr_le0 => /subnKC <-.
elim: (m - n)%N => [|c IH]; first by rewrite addn0.
have le_ic : (i <= n + c)%N by rewrite (leq_trans le_in) ?leq_addr.
have mi_gt0 : 0 < mass b i (n + c) by rewrite mass_gt0.
rewrite addnS -(ler_pmul2r mi_gt0).
apply: (le_trans (mass_ratio_falls b_gt0 b_lt1 a le_ic)).
by rewrite [leRHS]mulrAC ler_wpmul2r ?mass_ge0.
Qed.

(* The gain rises up to the worst n and falls afterwards. *)
Lemma gain_worst E a i n m : 0 <= E -> worst b E a i n ->
  gain b E a i.+1 m <= gain b E a i.+1 n.
Proof.
move=> E_ge0 worst_n; case: (leqP m n) => [le_mn | /ltnW le_nm].
  rewrite -(subKn le_mn); elim: (n - m)%N => [|c IH]; first by rewrite subn0.
  apply: le_trans IH; case: (ltnP c n) => [lt_cn | le_nc]; last first.
    by move: (le_nc) (leqW le_nc); rewrite -!subn_eq0 => /eqP -> /eqP ->.
  have -> : (n - c = (n - c.+1).+1)%N by rewrite -subSn // subSS.
  rewrite gain_step ler_addl mulr_ge0 ?(ltW b_gt0) // (below_worst worst_n) //.
  by rewrite ltn_subrL (leq_ltn_trans _ lt_cn).
rewrite -(subnKC le_nm); elim: (m - n)%N => [|c IH]; first by rewrite addn0.
rewrite addnS gain_step; apply: le_trans IH.
by rewrite ger_addl pmulr_rle0 // (above_worst E_ge0 worst_n) ?leq_addr.
Qed.

Lemma gain_worst_ge0 E a i n : 0 <= E -> worst b E a i n -> 0 <= gain b E a i.+1 n.
Proof.
move=> E_ge0 worst_n; apply: le_trans (gain_worst 0 E_ge0 worst_n).
by rewrite /gain tail_zero mulr0 subr0 tail_ge0.
Qed.

(* Removing a records, for every n and every set of outcomes. *)
Lemma removal_core E a i n : 1 <= E -> worst b E a i n ->
  forall m S, law b i.+1 (m + a) S <= E * law b i.+1 m S + gain b E a i.+1 n.
Proof.
move=> E_ge1 worst_n m S; have E_ge0 : 0 <= E by apply: le_trans E_ge1.
have H_ge0 := gain_worst_ge0 E_ge0 worst_n.
apply: law_core => // [m'|]; first exact: gain_worst.
by apply: le_trans H_ge0; rewrite subr_le0.
Qed.

(* Adding records is removing them from the complements of events, at 1/E. *)
Lemma loss_gain E a J n : E != 0 -> loss b E a J n = 1 - E + E * gain b E^-1 a J n.
Proof. by move=> E_neq0; rewrite /loss /gain; field. Qed.

Lemma worst_loss_ge0 E a i n : 1 <= E -> worst b E^-1 a i n -> 0 <= loss b E a i.+1 n.
Proof.
move=> E_ge1 worst_n; have E_gt0 : 0 < E by apply: lt_le_trans E_ge1.
have [le_in at_n _] := and3P worst_n.
pose N := (i.+1 + (n + a).+1)%N.
have le_iN : (i.+1 <= N)%N by rewrite leq_addr.
have lt_naN : (n + a < N)%N by rewrite leq_addl.
have lt_nN : (n < N)%N by rewrite (leq_ltn_trans _ lt_naN) ?leq_addr.
have low m : (m < N)%N -> 1 - tail b i.+1 m = \sum_(0 <= j < i.+1) mass b j m.
  move=> lt_mN; rewrite -[1](tail0 b m) !(@tail_wide _ _ m N) //.
  by rewrite (big_cat_nat _ _ _ (leq0n i.+1) le_iN) /= addrK.
rewrite /loss !low // mulr_sumr -sumrB big_nat.
apply: sumr_ge0 => j; rewrite ltnS => /andP [_ le_ji]; rewrite subr_ge0.
have mi_gt0 : 0 < mass b i n by rewrite mass_gt0.
rewrite -(ler_pmul2r mi_gt0) -mulrA.
apply: le_trans (ler_wpmul2l (ltW E_gt0) (mass_ratio_rises b_gt0 b_lt1 a n le_ji)) _.
rewrite mulrA [leRHS]mulrC ler_wpmul2r ?mass_ge0 //.
by rewrite -(ler_pdivl_mull _ _ E_gt0).
Qed.

Lemma addition_core E a i n : 1 <= E -> worst b E^-1 a i n ->
  forall m S, law b i.+1 m S <= E * law b i.+1 (m + a) S + loss b E a i.+1 n.
Proof.
move=> E_ge1 worst_n m S; have E_gt0 : 0 < E by apply: lt_le_trans E_ge1.
have E'_ge0 : 0 <= E^-1 by rewrite invr_ge0 ltW.
have L_ge0 := worst_loss_ge0 E_ge1 worst_n.
rewrite loss_gain ?gt_eqF // in L_ge0 *.
have bound : law b i.+1 (m + a) (predC S) <= E^-1 * law b i.+1 m (predC S) + gain b E^-1 a i.+1 n.
  apply: law_core => // [m'||]; [exact: gain_worst | exact: gain_worst_ge0 |].
  rewrite -(ler_pmul2l E_gt0) mulrBr mulr1 mulfV ?gt_eqF //.
  by rewrite -subr_ge0 (_ : _ - _ = 1 - E + E * gain b E^-1 a i.+1 n) //; ring.
rewrite !law_setC // -(ler_pmul2l E_gt0) [leRHS]mulrDr mulVKf ?gt_eqF // -subr_ge0 in bound.
rewrite -subr_ge0; apply: le_trans bound _; rewrite le_eqVlt; apply/orP; left; apply/eqP.
by ring.
Qed.

(* Where E (1-b)^a >= 1 adding costs nothing, outcome by outcome. *)
Lemma addition_free E a k : 1 <= E * (1 - b) ^+ a ->
  forall m S, law b k m S <= E * law b k (m + a) S.
Proof.
move=> E_large m S.
have q_ge0 : 0 <= 1 - b by rewrite subr_ge0 ltW.
have qa_gt0 : 0 < (1 - b) ^+ a by rewrite exprn_gt0 // subr_gt0.
have E_ge0 : 0 <= E by rewrite -(pmulr_lge0 _ qa_gt0) (le_trans _ E_large).
have fewer phi c : (forall j, 0 <= phi j) -> (1 - b) ^+ c * mean b m phi <= mean b (m + c) phi.
  move=> phi_ge0; elim: c => [|c IH]; first by rewrite mul1r addn0.
  rewrite addnS meanS exprS -mulrA -[leLHS]add0r ler_add //.
    by rewrite mulr_ge0 ?mean_ge0 // ltW.
  by rewrite ler_wpmul2l.
have bound := fewer (fun j => (S (published k j))%:R) a (fun j => ler0n _ _).
apply: le_trans (ler_wpmul2l E_ge0 bound).
by rewrite mulrA -[leLHS]mul1r ler_wpmul2r ?law_ge0.
Qed.

End Rate.

(* ---- One record more: the theorem. ---- *)

Lemma gamma_lt1 b E : b < 1 -> 0 < E -> gamma b E < 1.
Proof. by move=> b_lt1 E_gt0; rewrite /gamma ltr_subl_addr ltr_addl divr_gt0 // subr_gt0. Qed.

Lemma step_sign b E i n : 0 < E ->
  (mass b i n.+1 - E * mass b i n) * (n.+1%:R * (1 - b))
  = E * mass b i n.+1 * (i%:R - gamma b E * n.+1%:R).
Proof.
move=> E_gt0; case: (leqP i n.+1) => [le_in | lt_ni]; last first.
  by rewrite (mass_small b lt_ni) (mass_small b (ltn_trans (ltnSn n) lt_ni)); ring.
have trial := mass_trial b i n; rewrite natrB // in trial.
transitivity (mass b i n.+1 * (n.+1%:R * (1 - b)) - E * (mass b i n.+1 * (n.+1%:R - i%:R))).
  by rewrite trial; ring.
by rewrite /gamma; field; rewrite gt_eqF.
Qed.

Lemma least_worst b E i n : 0 < b -> b < 1 -> 0 < E ->
  least (gamma b E) i n -> worst b E 1 i n.
Proof.
move=> b_gt0 b_lt1 E_gt0 /andP [at_n /forallP first].
have q_gt0 : 0 < 1 - b by rewrite subr_gt0.
have Nq_gt0 m : 0 < m.+1%:R * (1 - b) by rewrite mulr_gt0 ?ltr0n.
have le_in : (i <= n)%N.
  rewrite -ltnS -(ltr_nat R); apply: le_lt_trans at_n _.
  by rewrite -[ltRHS]mul1r ltr_pmul2r ?ltr0n // gamma_lt1.
apply/and3P; split=> //.
  rewrite addn1 -subr_le0 -(pmulr_lle0 _ (Nq_gt0 n)) step_sign //.
  by apply: mulr_ge0_le0; rewrite ?subr_le0 // mulr_ge0 ?mass_ge0 ?ltW.
apply/forallP => m; apply/implyP => le_im.
rewrite addn1 -subr_gt0 -(pmulr_lgt0 _ (Nq_gt0 m)) step_sign //.
apply: mulr_gt0; last by rewrite subr_gt0 first.
by apply: (mulr_gt0 E_gt0); rewrite mass_gt0 // leqW.
Qed.

(* P_{n+1}(S) <= E P_n(S) + H(k) for all n and S, with H(k) = h_k(worst n). *)
Theorem removal b E i n : 0 < b -> b < 1 -> 1 <= E -> least (gamma b E) i n ->
  forall m S, law b i.+1 m.+1 S <= E * law b i.+1 m S + gain b E 1 i.+1 n.
Proof.
move=> b_gt0 b_lt1 E_ge1 least_n m S; rewrite -(addn1 m).
by apply: removal_core => //; apply: least_worst => //; apply: lt_le_trans E_ge1.
Qed.

(* P_n(S) <= E P_{n+1}(S) + R(k) likewise; its gamma' = 1 - E (1-b) is gamma at 1/E. *)
Theorem addition b E i n : 0 < b -> b < 1 -> 1 <= E -> least (gamma b E^-1) i n ->
  forall m S, law b i.+1 m S <= E * law b i.+1 m.+1 S + loss b E 1 i.+1 n.
Proof.
move=> b_gt0 b_lt1 E_ge1 least_n m S; rewrite -(addn1 m).
apply: addition_core => //; apply: least_worst => //.
by rewrite invr_gt0; apply: lt_le_trans E_ge1.
Qed.

(* Where gamma' <= 0 addition costs nothing. *)
Theorem addition_free_of_charge b E k : 0 < b -> b < 1 -> 1 <= E -> gamma b E^-1 <= 0 ->
  forall m S, law b k m S <= E * law b k m.+1 S.
Proof.
move=> b_gt0 b_lt1 E_ge1 gamma_le0 m S; rewrite -(addn1 m).
apply: addition_free => //; rewrite expr1.
by move: gamma_le0; rewrite /gamma invrK subr_le0 mulrC.
Qed.

(* Both are attained, each by one table and one set of outcomes. *)
Theorem removal_attained b E k n : (0 < k)%N ->
  law b k n.+1 (fun j => k <= j)%N = E * law b k n (fun j => k <= j)%N + gain b E 1 k n.
Proof. by move=> k_gt0; rewrite !law_shown // /gain addn1; ring. Qed.

Theorem addition_attained b E k n : (0 < k)%N ->
  law b k n (fun j => j < k)%N = E * law b k n.+1 (fun j => j < k)%N + loss b E 1 k n.
Proof.
move=> k_gt0.
have below m : law b k m (fun j => j < k)%N = 1 - tail b k m.
  by rewrite -law_shown // -law_setC; apply: mean_ext => j /=; rewrite ltnNge.
by rewrite !below /loss addn1; ring.
Qed.

(* So the larger of the two is the smallest delta there is. *)
Theorem exact_delta b E i n n' : 0 < b -> b < 1 -> 1 <= E ->
    least (gamma b E) i n -> least (gamma b E^-1) i n' ->
  smallest b E i.+1 (Num.max (gain b E 1 i.+1 n) (loss b E 1 i.+1 n')).
Proof.
move=> b_gt0 b_lt1 E_ge1 least_n least_n'; split=> [m S | d' private_d'].
  split; [apply: le_trans (removal _ _ _ least_n m S) _ | apply: le_trans (addition _ _ _ least_n' m S) _] => //;
  by rewrite ler_add2l le_maxr lexx ?orbT.
rewrite le_maxl; apply/andP; split.
  have [+ _] := private_d' n (fun j => i.+1 <= j)%N.
  by rewrite (removal_attained b E) // ler_add2l.
have [_] := private_d' n' (fun j => j < i.+1)%N.
by rewrite (addition_attained b E) // ler_add2l.
Qed.

Theorem exact_delta_free_addition b E i n : 0 < b -> b < 1 -> 1 <= E ->
    least (gamma b E) i n -> gamma b E^-1 <= 0 ->
  smallest b E i.+1 (gain b E 1 i.+1 n).
Proof.
move=> b_gt0 b_lt1 E_ge1 least_n gamma_le0; split=> [m S | d' private_d'].
  split; first exact: removal.
  apply: le_trans (addition_free_of_charge i.+1 b_gt0 b_lt1 E_ge1 gamma_le0 m S) _.
  rewrite ler_addl; apply: gain_worst_ge0 => //; first exact: le_trans E_ge1.
  by apply: least_worst => //; apply: lt_le_trans E_ge1.
have [+ _] := private_d' n (fun j => i.+1 <= j)%N.
by rewrite (removal_attained b E) // ler_add2l.
Qed.

(* The sum that is evaluated: at the worst n every term is at least 0. *)
Theorem gain_computed b E k n : b < 1 -> 0 < E -> (k <= n.+2)%N ->
  gain b E 1 k n = \sum_(k <= j < n.+2)
    mass b j n.+1 * E * (j%:R - gamma b E * n.+1%:R) / (n.+1%:R * (1 - b)).
Proof.
move=> b_lt1 E_gt0 le_kn; rewrite /gain addn1 !(@tail_wide _ _ _ n.+2) //.
rewrite mulr_sumr -sumrB; apply: eq_bigr => j _.
have Nq_neq0 : n.+1%:R * (1 - b) != 0 by rewrite mulf_neq0 ?pnatr_eq0 // subr_eq0 eq_sym lt_eqF.
by apply: (mulIf Nq_neq0); rewrite step_sign // mulfVK //; ring.
Qed.

(* ---- How delta moves. ---- *)

Section Moves.
Variables (b E d : R) (k : nat).
Hypotheses (b_gt0 : 0 < b) (b_lt1 : b < 1).

(* A higher threshold is a function of what a lower one shows. *)
Lemma private_raise_k k' : (0 < k)%N -> (k <= k')%N -> private b E k d -> private b E k' d.
Proof.
move=> k_gt0 le_kk' private_d n S.
have same m : law b k' m S = law b k m (fun j => S (published k' j)).
  apply: mean_ext => j; rewrite /published; case: (leqP k j) => [// | lt_jk].
  by rewrite [in LHS]leqNgt (leq_trans lt_jk le_kk') /= leqNgt (leq_trans k_gt0 le_kk').
by rewrite !same; apply: private_d.
Qed.

Lemma private_raise_E E' : E <= E' -> private b E k d -> private b E' k d.
Proof.
move=> le_E private_d n S; have [rem add] := private_d n S.
by split; [apply: le_trans rem _ | apply: le_trans add _];
  rewrite ler_add2r ler_wpmul2r ?law_ge0.
Qed.

(* A lower rate is a higher one after another sampling; delta even shrinks by that factor. *)
Theorem private_lower_b p : 1 <= E -> 0 < p -> p <= 1 ->
  private b E k d -> private (p * b) E k (p * d).
Proof.
move=> E_ge1 p_gt0 p_le1 private_d n S.
have weight_ge0 j m : 0 <= mass p j m by rewrite !mulr_ge0 ?exprn_ge0 ?ler0n ?subr_ge0 // ltW.
have thin m : law (p * b) k m S = mean p m (fun c => law b k c S) by rewrite /law mean_thin.
pose f c := law b k c S.
rewrite !thin meanS -/f; set A := mean p n (fun c => f c.+1); set B := mean p n f.
have q_ge0 : 0 <= 1 - p by rewrite subr_ge0.
have up : A <= E * B + d.
  rewrite -[d](mean_const p n) -meanZ -meanD; apply: ler_sum => c _.
  by apply: ler_wpmul2l; rewrite ?weight_ge0 //; case: (private_d c S).
have down : B <= E * A + d.
  rewrite -[d](mean_const p n) -meanZ -meanD; apply: ler_sum => c _.
  by apply: ler_wpmul2l; rewrite ?weight_ge0 //; case: (private_d c S).
have B_ge0 : 0 <= B by apply: sumr_ge0 => c _; rewrite mulr_ge0 ?weight_ge0 ?law_ge0.
have B_le : (1 - p) * B <= (1 - p) * (E * B).
  by rewrite ler_wpmul2l // -[leLHS]mul1r ler_wpmul2r.
split.
  have -> : E * B + p * d = p * (E * B + d) + (1 - p) * (E * B) by ring.
  by apply: ler_add B_le; rewrite ler_pmul2l.
have -> : E * (p * A + (1 - p) * B) + p * d = p * (E * A + d) + (1 - p) * (E * B) by ring.
rewrite [leLHS](_ : _ = p * B + (1 - p) * B); last by ring.
by apply: ler_add B_le; rewrite ler_pmul2l.
Qed.

End Moves.

(* The smallest delta falls with k and with E, and rises with b. *)
Theorem delta_falls_with_k b E k k' d d' : 0 < b -> b < 1 -> (0 < k)%N -> (k <= k')%N ->
  smallest b E k d -> smallest b E k' d' -> d' <= d.
Proof.
move=> b_gt0 b_lt1 k_gt0 le_kk' [private_d _] [_ least_d']; apply: least_d'.
exact: private_raise_k private_d.
Qed.

Theorem delta_falls_with_E b E E' k d d' : 0 < b -> b < 1 -> E <= E' ->
  smallest b E k d -> smallest b E' k d' -> d' <= d.
Proof.
move=> b_gt0 b_lt1 le_EE' [private_d _] [_ least_d']; apply: least_d'.
exact: private_raise_E private_d.
Qed.

Theorem delta_rises_with_b b b' E k d d' : 0 < b -> b <= b' -> b' < 1 -> 1 <= E ->
  smallest b E k d -> smallest b' E k d' -> d <= d'.
Proof.
move=> b_gt0 le_bb' b'_lt1 E_ge1 [_ least_d] [private_d' _].
have b'_gt0 := lt_le_trans b_gt0 le_bb'.
have p_gt0 : 0 < b / b' by rewrite divr_gt0.
have p_le1 : b / b' <= 1 by rewrite ler_pdivr_mulr ?mul1r.
have d'_ge0 : 0 <= d'.
  have empty m : law b' k m xpred0 = 0 by apply: (mean_const b' m 0).
  by have [+ _] := private_d' 0%N xpred0; rewrite !empty mulr0 add0r.
have := private_lower_b b'_gt0 b'_lt1 E_ge1 p_gt0 p_le1 private_d'.
rewrite divfK ?gt_eqF // => /least_d le_d; apply: le_trans le_d _.
by rewrite -[leRHS]mul1r ler_wpmul2r.
Qed.

(* delta is never below b^k: a cell of exactly k records that is sampled whole. *)
Theorem delta_at_least b E k d : (0 < k)%N -> private b E k d -> b ^+ k <= d.
Proof.
case: k => // i _ private_d; have [+ _] := private_d i (fun j => i.+1 <= j)%N.
have none : tail b i.+1 i = 0 by rewrite (@tail_wide _ _ _ i.+1) // big_geq.
have all : tail b i.+1 i.+1 = b ^+ i.+1.
  by rewrite (@tail_wide _ _ _ i.+2) // big_nat1 /mass subnn binn expr0 !mulr1.
by rewrite !law_shown // none all mulr0 add0r.
Qed.

(* Promises mix, so the smallest delta is a convex function of E. *)
Theorem delta_is_convex b E1 E2 k d1 d2 d t : 0 <= t -> t <= 1 ->
    private b E1 k d1 -> private b E2 k d2 ->
    smallest b (t * E1 + (1 - t) * E2) k d ->
  d <= t * d1 + (1 - t) * d2.
Proof.
move=> t_ge0 t_le1 private_1 private_2 [_ least_d]; apply: least_d => n S.
have s_ge0 : 0 <= 1 - t by rewrite subr_ge0.
have mix (x y1 y2 : R) : x <= y1 -> x <= y2 -> x <= t * y1 + (1 - t) * y2.
  move=> le1 le2; rewrite [x in x <= _](_ : x = t * x + (1 - t) * x); last by ring.
  by apply: ler_add; apply: ler_wpmul2l.
have [r1 a1] := private_1 n S; have [r2 a2] := private_2 n S.
by split; [apply: le_trans (mix _ _ _ r1 r2) _ | apply: le_trans (mix _ _ _ a1 a2) _];
  rewrite le_eqVlt; apply/orP; left; apply/eqP; ring.
Qed.

End Crowd.

(* In the reals, the rationals and every other archimedean field the worst n is there. *)
Theorem least_exists (R : archiFieldType) (g : R) i : 0 < g -> exists n, least g i n.
Proof.
move=> g_gt0; pose P n := i%:R <= g * n.+1%:R.
have exP : exists n, P n.
  exists (Num.ExtraDef.archi_bound (i%:R / g)); rewrite /P -ler_pdivr_mull // mulrC.
  have /archi_boundP/ltW le_bound : 0 <= i%:R / g by rewrite divr_ge0 ?ler0n ?ltW.
  by apply: le_trans le_bound _; rewrite ler_nat.
exists (ex_minn exP); case: ex_minnP => n Pn n_min; apply/andP; split=> //.
apply/forallP => m; rewrite ltNge; apply/negP => /n_min.
by rewrite leqNgt ltn_ord.
Qed.

Lemma gamma_gt0 (R : realFieldType) (b E : R) : 0 < b -> b < 1 -> 1 <= E -> 0 < gamma b E.
Proof.
move=> b_gt0 b_lt1 E_ge1; rewrite subr_gt0 ltr_pdivr_mulr ?mul1r; last exact: lt_le_trans E_ge1.
by apply: lt_le_trans E_ge1; rewrite ltr_subl_addr ltr_addl.
Qed.
